"""The parts of a runtime that note when requests pass them, and how a runtime chooses its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from coordinator.core.state.outcome import ArmClassicDeadline, Outcome
from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import ShardCommand
from coordinator.runtime.api import Reply
from coordinator.runtime.commands.apply import Apply
from coordinator.runtime.commands.group_command_runner import GroupCommands
from coordinator.runtime.commit.entries import CommitEntry, Entry
from coordinator.runtime.commit.syncs import Syncs
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.trips.trip import Stage, Trip
from coordinator.runtime.trips.trips import TripReply, Trips
from model.commands.command import DeletionCommand
from model.commands.offsets import OffsetCommit
from model.commands.resets import ResetOffsets
from model.ids import GroupId
from storage.log_store import PartitionAppend


@dataclass(frozen=True, slots=True)
class Kinds:
    """The classes of the parts on the way of every request.

    They are chosen when a runtime is made: one that traces nothing never asks whether it does.
    """

    writer: type[Writer] = Writer
    apply: type[Apply] = Apply
    groups: type[GroupCommands] = GroupCommands


PLAIN: Final = Kinds()


def make_traced_kinds(trips: Trips) -> Kinds:
    """The parts that note the stages of ``trips``."""
    # Each is called as the class is that it stands for.
    return Kinds(
        cast(type[Writer], partial(TracedWriter, trips)),
        cast(type[Apply], partial(TracedApply, trips)),
        cast(type[GroupCommands], partial(TracedGroups, trips)),
    )


class TracedSyncs(Syncs):
    """Notes when a sync begins and ends."""

    def __init__(self, trips: Trips, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._trips = trips

    def begin(self, *, may_wait: bool) -> None:
        """See ``Syncs``. The loop may sync at once, so the beginning is noted first."""
        self._trips.begin_sync()
        super().begin(may_wait=may_wait)

    def _on_synced(self, result: BaseException | None) -> None:
        self._trips.end_sync()
        super()._on_synced(result)


class TracedWriter(Writer):
    """Notes when records are gathered, and when they are written."""

    def __init__(self, trips: Trips, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named, make_syncs=partial(TracedSyncs, trips))
        self._trips = trips

    def append(self, entry: Entry) -> None:
        """See ``Writer``."""
        super().append(entry)
        self._trips.note_gathered()

    def append_commit(self, entry: CommitEntry) -> None:
        """See ``Writer``."""
        super().append_commit(entry)
        self._trips.note_gathered()

    def _note_written(self, appends: list[PartitionAppend], wall_ms: int) -> None:
        super()._note_written(appends, wall_ms)
        self._trips.note_written()


class TracedApply(Apply):
    """Notes when a command has been handled: what follows is put into memory."""

    def __init__(self, trips: Trips, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._trips = trips

    def outcome(
        self,
        shard: Shard,
        command: ShardCommand | DeletionCommand | ResetOffsets,
        outcome: Outcome,
        reply: Reply,
    ) -> None:
        """See ``Apply``."""
        self._trips.note(Stage.HANDLED)
        super().outcome(shard, command, outcome, reply)

    def commit(self, shard: Shard, group_id: GroupId, outcome: Outcome, reply: Reply) -> None:
        """See ``Apply``."""
        self._trips.note(Stage.HANDLED)
        super().commit(shard, group_id, outcome, reply)

    def repeated_commit(
        self,
        shard: Shard,
        group_id: GroupId,
        session: ArmClassicDeadline | None,
        entry: CommitEntry,
    ) -> None:
        """See ``Apply``."""
        self._trips.note(Stage.HANDLED)
        super().repeated_commit(shard, group_id, session, entry)

    def transaction(
        self, shard: Shard, outcome: Outcome, groups: tuple[GroupId, ...], reply: Reply
    ) -> None:
        """See ``Apply``."""
        self._trips.note(Stage.HANDLED)
        super().transaction(shard, outcome, groups, reply)


class TracedGroups(GroupCommands):
    """Notes when a command's turn has come, and whose command it is."""

    def __init__(self, trips: Trips, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._trips = trips

    def settle(
        self, shard: Shard, command: ShardCommand, reply: Reply, compute: Callable[[], Outcome]
    ) -> None:
        """See ``GroupCommands``. Targets and continuations are settled within another's."""
        trips = self._trips
        outer, trips.acting = trips.acting, _find_trip(reply)
        trips.note(Stage.HANDLING)
        try:
            super().settle(shard, command, reply, compute)
        finally:
            trips.acting = outer

    def commit(self, command: OffsetCommit, reply: Reply) -> None:
        """See ``GroupCommands``."""
        self._trips.note(Stage.HANDLING)
        super().commit(command, reply)


def _find_trip(reply: Reply) -> Trip | None:
    return reply.trip if isinstance(reply, TripReply) else None
