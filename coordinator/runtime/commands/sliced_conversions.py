"""Converts large groups between protocol types: computed in slices, applied at once.

A conversion costs some 50 µs per member and is atomic: no reader may see half of it, and a crash
must leave all of it or nothing. The new group is therefore built from a snapshot in slices, then
replayed and written at once. Commands of the group's members are held meanwhile, because a joining
member would invalidate the snapshot; they are handled after the conversion. Other changes of the
group (a target, a topic) are detected, and the command that caused the conversion is handled again:
a few times, then in one iteration, so that it ends.
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
    """Applies the outcome of a command, or refuses it with the exception raised."""

    def __call__(
        self, shard: Shard, command: ShardCommand, reply: Reply, compute: Callable[[], Outcome]
    ) -> None: ...


class Conversions:
    """Carries out commands whose outcome is computed in slices.

    ``handle`` is the core's, with the current time.
    """

    def __init__(
        self,
        slices: Slices,
        turns: Turns,
        handle: Callable[[Shard, ShardCommand], Outcome],
        settle: Settle,
    ) -> None:
        # Reads must not wait for a conversion.
        self._slices = slices.beside()
        self._turns = turns
        self._handle = handle
        self._settle = settle

    def begin(self, shard: Shard, command: ShardCommand, outcome: Outcome, reply: Reply) -> None:
        """Start; the first slice runs in a later iteration, because this one has other commands."""
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
        """The outcome of the command. Raises the ``GroupError`` that refuses it."""
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
    """The outcome with its records encoded; ``None`` if the group has changed."""
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
