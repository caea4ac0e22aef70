"""Large groups that change their type: a slice a turn, and what it comes to all at once.

A conversion costs some 50 µs for each member, and is one: nobody may see half of it, and a crash
must leave all of it or nothing. So it is made of the group as it is, out of sight, and then
replayed and written at once. Meanwhile what members say waits, or each of them that joins would
spoil it; it is handled when the group has its new type. What else may change the group, a target
or a topic, is noticed, and the command that brings the conversion is handled anew: a few times,
and then in one turn, for it must come to an end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from coordinator.core.state.conversion import Snapshot, take_snapshot
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps, run_at_once
from coordinator.dispatch.handle import ShardCommand
from coordinator.runtime.api import Reply
from coordinator.runtime.commands.command_turns import Turns
from coordinator.runtime.commit.partition_encoder import make_blocks
from coordinator.runtime.loop.slices import Slices
from model.errors import GroupError

ATTEMPTS_MAX: Final = 4


class Settle(Protocol):
    """Carries out what a command comes to, or refuses it with what is raised."""

    def __call__(
        self, shard: Shard, command: ShardCommand, reply: Reply, compute: Callable[[], Outcome]
    ) -> None: ...


class Conversions:
    """Carries out commands whose outcome is to be computed in slices.

    ``handle`` is the core's, as of now.
    """

    def __init__(
        self,
        slices: Slices,
        turns: Turns,
        handle: Callable[[Shard, ShardCommand], Outcome],
        settle: Settle,
    ) -> None:
        # No read waits for a conversion.
        self._slices = slices.beside()
        self._turns = turns
        self._handle = handle
        self._settle = settle

    def begin(self, shard: Shard, command: ShardCommand, outcome: Outcome, reply: Reply) -> None:
        """The first slice is done in a later turn: this one has its commands."""
        snapshot = take_snapshot(shard, command.group_id)
        self._turns.hold(command.group_id)

        def end(compute: Callable[[], Outcome]) -> None:
            try:
                self._settle(shard, command, reply, compute)
            finally:
                self._turns.let_go(command.group_id)

        def fail(error: Exception) -> None:
            end(lambda: _raise(error))

        def work() -> Steps[None]:
            try:
                found = yield from self._compute(shard, command, snapshot, outcome)
            except GroupError as refusal:
                fail(refusal)
            else:
                end(lambda: found)

        self._slices.go_on(work(), fail)

    def _compute(
        self, shard: Shard, command: ShardCommand, snapshot: Snapshot, outcome: Outcome
    ) -> Steps[Outcome]:
        """What the command comes to. Raises what it is refused with."""
        for _ in range(ATTEMPTS_MAX):
            if outcome.slices is None:
                return outcome
            found = yield from _make(shard, snapshot, outcome.slices)
            if found is not None:
                return found
            snapshot = take_snapshot(shard, command.group_id)
            outcome = self._handle(shard, command)
        return outcome if outcome.slices is None else run_at_once(outcome.slices)


def _make(shard: Shard, snapshot: Snapshot, slices: Steps[Outcome]) -> Steps[Outcome | None]:
    """The outcome with its records encoded; ``None`` where the group is not as it was."""
    steps = _encoded(slices)
    while snapshot.is_as_it_was(shard):
        try:
            next(steps)
        except StopIteration as end:
            outcome: Outcome = end.value
            names = () if outcome.converted is None else outcome.converted.names
            return outcome if snapshot.has_topics(shard.image, names) else None
        yield
    return None


def _encoded(slices: Steps[Outcome]) -> Steps[Outcome]:
    outcome = yield from slices
    if outcome.converted is not None:
        outcome.converted.blocks = yield from make_blocks(outcome.records)
    return outcome


def _raise(error: Exception) -> Outcome:
    raise error
