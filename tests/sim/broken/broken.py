"""Cores, writers and disks that are broken on purpose: the simulation must find each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from coordinator.core.consumer import (
    heartbeat,
    reconcile,
    refresh,
    removal,
    state_after,
    static_members,
)
from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.target.target_assignment import find_target_problem
from coordinator.runtime.commands import stopped_shards
from coordinator.runtime.commit.entries import Entry
from coordinator.runtime.commit.syncs import Syncs
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.members.heartbeat_ticket import Ticket
from coordinator.runtime.targets.target_schedule import Targets
from model.errors import UnreleasedInstanceId
from model.log.records import ConsumerGroupMetadataValue, Record
from tests.support.memory import MemoryLogStore
from tests.support.virtual.disk import SimDisk
from tests.written import check_writers
from translator import departure

Patch = Callable[[pytest.MonkeyPatch], None]


def two_owners(patch: pytest.MonkeyPatch) -> None:
    """A partition is given to a member although another holds it."""
    compute = reconcile.compute_next_assignment_state

    def careless(*arguments: Any, **options: Any) -> Any:
        return compute(*arguments, **{**options, "is_free": lambda number: True})

    patch.setattr(state_after, "compute_next_assignment_state", careless)


def revocation_not_awaited(patch: pytest.MonkeyPatch) -> None:
    """What is revoked is free before the member has given it up."""
    patch.setattr(reconcile, "_owns_any", lambda owned, revoked: False)


def answer_before_fsync(patch: pytest.MonkeyPatch) -> None:
    """The writer releases answers when they are written."""
    begin = Syncs.begin

    def hasty(self: Syncs, *, may_wait: bool) -> None:
        waiters, self.next.waiters = self.next.waiters, []
        for reply, answer in waiters:
            reply(answer)
        begin(self, may_wait=may_wait)

    patch.setattr(Syncs, "begin", hasty)


def commit_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Every seventh commit is answered and not written."""
    append = Writer.append
    count = iter(range(1_000_000))

    def forgetful(self: Writer, entry: Entry) -> None:
        if entry.commits and next(count) % 7 == 6:
            entry = entry._replace(commits=())
        append(self, entry)

    patch.setattr(Writer, "append", forgetful)


def disk_that_lies(patch: pytest.MonkeyPatch) -> None:
    """A crash takes the last writes, though they were synced, and the watermark with them."""
    write, crash = SimDisk.write, SimDisk.crash
    written: dict[int, list[Any]] = {}

    def noting(self: SimDisk, appends: Any, side: Any = (), causes: Any = ()) -> None:
        write(self, appends, side, causes)
        written.setdefault(id(self), []).append((appends, side, causes))

    def losing(self: SimDisk, survivors: int) -> int:
        lost = crash(self, survivors)
        log = written.setdefault(id(self), [])
        del log[max(len(self.writes) - 4, 0) :]
        self.store = MemoryLogStore(self.partitions)
        for appends, side, causes in log:
            self.store.write(appends, side, causes)
        self.store.sync()
        return lost

    patch.setattr(SimDisk, "write", noting)
    patch.setattr(SimDisk, "crash", losing)


def epoch_going_back(patch: pytest.MonkeyPatch) -> None:
    """From the sixth epoch on a group gets the epoch again that it has."""
    compute = heartbeat.compute_epoch_bump

    def backwards(*arguments: Any) -> list[Record]:
        records = []
        for key, value in compute(*arguments):
            if isinstance(value, ConsumerGroupMetadataValue) and value.epoch > 5:
                value = replace(value, epoch=value.epoch - 1)
            records.append(Record(key, value))
        return records

    patch.setattr(heartbeat, "compute_epoch_bump", backwards)
    patch.setattr(removal, "compute_epoch_bump", backwards)
    patch.setattr(refresh, "compute_epoch_bump", backwards)


def expiry_too_early(patch: pytest.MonkeyPatch) -> None:
    """Sessions last half as long as they should."""
    begin = Liveness.__init__

    def hasty(self: Liveness, session_timeout_ms: int) -> None:
        begin(self, session_timeout_ms // 2)

    patch.setattr(Liveness, "__init__", hasty)


def target_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A target that is to be computed at once never is, from the fourth epoch on."""
    compute = Targets._compute

    def lazy(self: Targets, group_id: Any) -> None:
        problem = find_target_problem(self._shard_of(group_id), group_id)
        if problem is None or problem.group_epoch < 4:
            compute(self, group_id)

    patch.setattr(Targets, "_compute", lazy)


def ticket_that_never_dies(patch: pytest.MonkeyPatch) -> None:
    """A cached answer is given although the group has moved on."""
    patch.setattr(Ticket, "is_valid", lambda self: True)
    patch.setattr(Ticket, "touch", lambda self, now_ms: True)


def instance_of_two(patch: pytest.MonkeyPatch) -> None:
    """Whoever says the instance id of another is let in beside it."""
    find = static_members._find_static_member

    def careless(group: Any, instance_id: Any, command: Any) -> Any:
        try:
            return find(group, instance_id, command)
        except UnreleasedInstanceId:
            return group.member(command.member_id), False

    patch.setattr(static_members, "_find_static_member", careless)


def away_and_revived(patch: pytest.MonkeyPatch) -> None:
    """A static member that has left is as it was, and keeps its epoch."""
    leave_for_a_while = departure.compute_static_leave

    def careless(group: Any, member: Any) -> Record:
        key, value = leave_for_a_while(group, member)
        return Record(key, replace(value, member_epoch=member.member_epoch))

    patch.setattr(departure, "compute_static_leave", careless)


def checkpoint_too_early(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint says first up to where ``latest`` is true, and writes the entries then."""
    write = MemoryLogStore._write

    def hasty(self: MemoryLogStore, what: Any) -> None:
        if what.settled:
            ends = tuple(map(self._volatile.end, range(self.partitions)))
            write(self, replace(what, settled=(), positions=ends))
        if not what.positions:
            write(self, what)

    patch.setattr(MemoryLogStore, "_write", hasty)


BROKEN: tuple[tuple[Patch, frozenset[str]], ...] = (
    (two_owners, frozenset({"S1"})),
    (revocation_not_awaited, frozenset({"S3"})),
    (answer_before_fsync, frozenset({"S11"})),
    (commit_forgotten, frozenset({"S11"})),
    (checkpoint_too_early, frozenset({"S5", "S11", "S13", "S14", "S15"})),
    (disk_that_lies, frozenset({"S11", "S13"})),
    (epoch_going_back, frozenset({"S5"})),
    (expiry_too_early, frozenset({"L3", "S2"})),
    (target_forgotten, frozenset({"L1"})),
    (instance_of_two, frozenset({"S9", "S24"})),
    (away_and_revived, frozenset({"S11", "S9", "S24"})),
    (ticket_that_never_dies, frozenset({"ticket", "L3"})),
)
"""Each with the checkers of which one must find it."""


@contextmanager
def broken(patch: Patch) -> Iterator[None]:
    """The system with one fault in it, which it does not look for itself."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stopped_shards, "find_violation", lambda *arguments: None)
        patch(patched)
        yield
    # What it wrote in a seed that ended early is to be found by nobody else.
    check_writers()
