"""Replays a command's records, and updates what the shell derives from them: liveness, counts."""

from __future__ import annotations

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.replay.group_records import replay, replay_conversion
from coordinator.core.replay.offset_records import replay_no_offsets, replay_offset_group
from coordinator.core.replay.prepared_targets import replay_prepared_target
from coordinator.core.replay.shard_side_records import replay_shard_side
from coordinator.core.replay.token_records import end_command
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.runtime.commit.durability import Durability
from coordinator.runtime.commit.entries import NOTHING_WAITED, Waited
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loop.stats import Stats
from model.ids import GroupId, MemberId, ProducerId
from model.log.records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    OffsetCommitKey,
    RecordKey,
    RecordValue,
)


class Replayer:
    """Replays the outcome of a group's command, as part of the batch being gathered."""

    def __init__(
        self, writer: Writer, durability: Durability, liveness: Liveness, stats: Stats
    ) -> None:
        self._writer = writer
        self._durability = durability
        self._liveness = liveness
        self._stats = stats

    def replay(self, shard: Shard, group_id: GroupId, outcome: Outcome) -> Waited:
        """Replay; returns the producers whose pending offsets the tombstones remove."""
        waited = _find_waited(shard, outcome) if shard.open_transactions else NOTHING_WAITED
        self._replay(shard, group_id, outcome)
        end_command(shard)
        if outcome.last_offsets:
            replay_no_offsets(shard, group_id)
            # It may have been nothing but its offsets.
            self._durability.note_group(group_id, self._writer.generation)
        return waited

    def _replay(self, shard: Shard, group_id: GroupId, outcome: Outcome) -> None:
        generation = self._writer.generation
        if outcome.records and isinstance(outcome.records[0].key, OffsetCommitKey):
            self._durability.note_offsets(group_id, generation)
            are_all_offsets = isinstance(outcome.records[-1].key, OffsetCommitKey)
            if outcome.records[0].value is not None:
                replay_offset_group(shard, group_id)
            if are_all_offsets and not (shard.open_transactions or outcome.side):
                return
        if outcome.prepared is not None:
            replay_prepared_target(shard, group_id, outcome.records, outcome.prepared)
            self.replay_side(shard, outcome)
            self._durability.note_group(group_id, generation)
            return
        records = outcome.records
        if outcome.converted is not None:
            replay_conversion(shard, group_id, records, outcome.converted)
            for member_id in outcome.converted.gone:
                self._note_member(group_id, member_id, None)
            records = records[outcome.converted.count :]
        for record in records:
            if outcome.converted is None:
                replay(shard, record)
            if isinstance(record.key, ConsumerGroupMemberMetadataKey):
                self._note_member(group_id, record.key.member_id, record.value)
        self.replay_side(shard, outcome)
        self._durability.note_group(group_id, generation)

    def replay_side(self, shard: Shard, outcome: Outcome) -> None:
        """Replay the side records. Must follow the records, which create the members."""
        for record in outcome.side:
            replay_shard_side(shard, record)

    def _note_member(
        self, group_id: GroupId, member_id: MemberId, metadata: RecordValue | None
    ) -> None:
        """Drop the deadlines of the protocol that the member no longer uses."""
        is_consumer = is_classic = False
        if isinstance(metadata, ConsumerGroupMemberMetadataValue):
            is_classic = metadata.classic_member_metadata is not None
            is_consumer = not is_classic
        if not is_consumer:
            self._liveness.remove(group_id, member_id)
        if not is_classic:
            self._liveness.classic.cancel_member(group_id, member_id)


def _find_waited(shard: Shard, outcome: Outcome) -> Waited:
    found: dict[RecordKey, tuple[ProducerId, ...]] = {}
    for key, value in outcome.records:
        if value is None and isinstance(key, OffsetCommitKey):
            producers = shard.open_transactions.producers_of(key)
            if producers:
                found[key] = tuple(producers)
    return found
