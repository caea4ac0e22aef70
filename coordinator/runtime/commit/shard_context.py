"""What every command handler needs: the shards, the store, and when a response may be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.commit.durability import Durability
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loop.slices import Slices
from coordinator.runtime.loop.stats import Stats
from coordinator.runtime.loop.write_space import Space
from model.errors import GroupError
from model.ids import GroupId, compute_log_partition
from storage.log_store import LogStore


@dataclass(frozen=True)
class ShardContext:
    """The shards of a runtime, and what their commands are carried out with."""

    store: LogStore
    shards: Sequence[Shard]
    writer: Writer
    durability: Durability
    clock: SteadyClock
    stats: Stats
    space: Space
    slices: Slices

    def shard_of(self, group_id: GroupId) -> Shard:
        """The shard of the group's log partition."""
        return self.shards[compute_log_partition(group_id, len(self.shards))]

    def answer(self, group_ids: tuple[GroupId, ...], reply: Reply, answer: Answer) -> None:
        """Send a response once the state of these groups is durable, which usually is at once."""
        if isinstance(answer, GroupError):
            self.stats.count_error(answer.code.name)
        generation = self.durability.generation_of_groups(group_ids)
        self.writer.answer_when_durable(generation, reply, answer)

    def check_space(self, outcome: Outcome) -> None:
        """Raise ``CoordinatorNotAvailable`` if the outcome writes and the disk is too full."""
        if outcome.writes:
            self.space.check(self.clock.monotonic_ms(), self.stats)

    def is_low_on_space(self) -> bool:
        """Whether nothing may be written."""
        return self.space.is_low(self.clock.monotonic_ms())
