"""Records of a command into memory, and what the shell keeps beside them: liveness, counts."""

from __future__ import annotations

from coordinator.core.liveness import Liveness
from coordinator.core.outcome import Outcome
from coordinator.core.replay import replay
from coordinator.core.shard import Shard
from coordinator.runtime.durability import Durability
from coordinator.runtime.stats import Stats
from coordinator.runtime.writer import Writer
from model.ids import GroupId
from model.records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    OffsetCommitKey,
)


class Replayer:
    """Replays what a command of a group comes to, as part of the batch that is gathered."""

    def __init__(
        self, writer: Writer, durability: Durability, liveness: Liveness, stats: Stats
    ) -> None:
        self._writer = writer
        self._durability = durability
        self._liveness = liveness
        self._stats = stats

    def replay(self, shard: Shard, group_id: GroupId, outcome: Outcome) -> None:
        generation = self._writer.generation
        if isinstance(outcome.records[0].key, OffsetCommitKey):
            self._durability.note_offsets(group_id, generation)
            are_all_offsets = isinstance(outcome.records[-1].key, OffsetCommitKey)
            if are_all_offsets and not shard.open_transactions:
                return
        for record in outcome.records:
            replay(shard, record)
            if record.value is None:
                if isinstance(record.key, ConsumerGroupMemberMetadataKey):
                    self._liveness.remove(group_id, record.key.member_id)
            elif isinstance(record.key, ConsumerGroupMetadataKey):
                self._stats.group_epoch_bumps += 1
        self._durability.note_group(group_id, generation)
