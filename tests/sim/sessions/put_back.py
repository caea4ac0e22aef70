"""Faults that were mended, put back one at a time: the simulation finds each of them.

Each undoes one mend and nothing else, names the checkers that speak, and keeps the seed that finds
it. ``python -m tests.sim.sessions.put_back`` looks for the first such seed of each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

import muster.client
import muster.unary
from coordinator.core.liveness import Liveness, MemberLiveness
from coordinator.runtime.runtime import Runtime
from coordinator.service.sequences import Sequences
from coordinator.service.session import Session
from coordinator.service.sessions import SessionRegistry
from model.commands import Deadline
from model.ids import GroupId, MemberId
from muster.commit_order import CommitOrder
from muster.engine import Engine
from muster.lease import ClassicLease, Lease
from muster.membership import Status
from muster.offsets import Claim
from muster.stream import Stream
from tests.sim.sessions.run import run_seed
from tests.sim.sessions.verdicts import speaking
from tests.sim.violations import Violation

Patch = Callable[[pytest.MonkeyPatch], None]
SEEDS = 2_000


def commits_of_lost_grants(patch: pytest.MonkeyPatch) -> None:
    """A commit that is tried again does not ask whether the partition is still the member's."""
    patch.setattr(Claim, "check", lambda self: self._offsets)


def commits_beside_each_other(patch: pytest.MonkeyPatch) -> None:
    """A later commit of a partition goes beside an older one, which may be tried again after it."""

    @asynccontextmanager
    async def turn(self: CommitOrder, partitions: Iterable[Any]) -> AsyncIterator[None]:
        yield

    patch.setattr(CommitOrder, "turn", turn)


def _count_everywhere(patch: pytest.MonkeyPatch, method: str) -> None:
    """What one kind of action says counts on whichever stream it comes."""
    handle, check_speaks = getattr(Session, method), Session._check_speaks
    trusting: list[None] = []

    def careless(self: Session, action: Any) -> None:
        trusting.append(None)
        try:
            handle(self, action)
        finally:
            trusting.pop()

    def check(self: Session, *arguments: Any) -> None:
        if not trusting:
            check_speaks(self, *arguments)

    patch.setattr(Session, method, careless)
    patch.setattr(Session, "_check_speaks", check)


def late_commits_count(patch: pytest.MonkeyPatch) -> None:
    """A commit counts on a stream that speaks for its member no more."""
    _count_everywhere(patch, "_on_commit")


def late_leaves_count(patch: pytest.MonkeyPatch) -> None:
    """A Leave counts on a stream that speaks for its member no more."""
    _count_everywhere(patch, "_on_leave")


def late_joins_count(patch: pytest.MonkeyPatch) -> None:
    """The stream whose Join is handled last speaks for the member, and its claim is believed."""
    enter = SessionRegistry.enter

    def careless(self: SessionRegistry, key: Any, *said: Any) -> bool:
        self._latest.pop(key, None)
        self._past.pop(key, None)
        return enter(self, key, *said)

    patch.setattr(SessionRegistry, "enter", careless)


def rebalances_end_before_leases(patch: pytest.MonkeyPatch) -> None:
    """A member is put out as its rebalance timeout passes, whatever it was promised."""

    def hasty(self: Liveness, entry: MemberLiveness, epoch: int, now_ms: int, found: Any) -> None:
        found.append(self._expire(entry, Deadline.REBALANCE, epoch))
        entry.rebalance = None

    patch.setattr(Liveness, "_look_at_rebalance", hasty)


def classic_leases_of_sessions_alone(patch: pytest.MonkeyPatch) -> None:
    """The lease of a classic member knows nothing of the rebalance timeout."""

    def compute_deadline(self: ClassicLease) -> float:
        return self._renewed_at + self._session_s

    patch.setattr(ClassicLease, "compute_deadline", compute_deadline)


def promises_not_noted(patch: pytest.MonkeyPatch) -> None:
    """What a member is told of its session timeout is noted only when a message renews it."""

    def promise(self: Runtime, group_id: GroupId, member_id: MemberId) -> bool:
        return self.liveness.get(group_id, member_id) is not None

    patch.setattr(Runtime, "promise_session", promise)
    patch.setattr(Lease, "note_told", lambda self, session_timeout_ms: None)


def leases_forgotten_by_a_restart(patch: pytest.MonkeyPatch) -> None:
    """After a start members are promised what is in force then, and nothing that was before."""
    patch.setattr(Liveness, "note_loaded", lambda self, entry, now_ms: None)


def late_unary_commits_count(patch: pytest.MonkeyPatch) -> None:
    """Unary requests have no numbers: one that a connection held back counts."""
    patch.setattr(Sequences, "note", lambda self, key, sequence: True)


def cancelled_closes_leave_ghosts(patch: pytest.MonkeyPatch) -> None:
    """A member whose join or close was cancelled leaves only where its Join is not answered."""
    detach = Engine.detach

    def silent(self: Engine) -> None:
        if self.membership.status is Status.MEMBER:
            self._joined_on = None
        detach(self)

    patch.setattr(Engine, "detach", silent)
    patch.setattr(Stream, "finish", Stream.shut)


def expired_members_leave_ghosts(patch: pytest.MonkeyPatch) -> None:
    """A member whose lease has ended by its own clock is gone without a word."""
    leave = Engine._leave_behind_nobody

    def silent(self: Engine) -> None:
        if self.holds or self.membership.status is Status.JOINING:
            leave(self)

    patch.setattr(Engine, "_leave_behind_nobody", silent)


def closed_connections_cancel(patch: pytest.MonkeyPatch) -> None:
    """A call whose connection is closed under it ends as if somebody had cancelled."""

    async def ask(method: Any, request: Any, **options: Any) -> Any:
        return await method(request, **options)

    mended = muster.unary.ask
    for name, module in tuple(sys.modules.items()):
        if name.startswith("muster.") and vars(module).get("ask") is mended:
            patch.setattr(module, "ask", ask)


class PutBack(NamedTuple):
    """A fault, the checkers that speak, and the first seed that they find it in."""

    patch: Patch
    names: tuple[str, ...]
    seed: int


PUT_BACK: tuple[PutBack, ...] = (
    PutBack(commits_of_lost_grants, ("S15", "S11"), 132),
    PutBack(commits_beside_each_other, ("S15",), 190),
    PutBack(late_commits_count, ("S15",), 2),
    PutBack(late_joins_count, ("renamed",), 2),
    PutBack(late_joins_count, ("S2",), 138),
    PutBack(late_leaves_count, ("S2",), 74),
    PutBack(rebalances_end_before_leases, ("S2",), 8),
    PutBack(classic_leases_of_sessions_alone, ("S2",), 20),
    PutBack(promises_not_noted, ("S2",), 40),
    PutBack(late_unary_commits_count, ("S15",), 296),
    PutBack(cancelled_closes_leave_ghosts, ("ghost",), 405),
    PutBack(expired_members_leave_ghosts, ("ghost",), 317),
    PutBack(closed_connections_cancel, ("cancelled",), 1),
)


RARE: tuple[PutBack, ...] = (PutBack(leases_forgotten_by_a_restart, ("S2",), 0),)
"""Found in too few seeds to be looked for in every run; without a seed that is kept."""


def find(fault: PutBack, seed: int) -> Violation | None:
    """What the checkers say of this seed with the fault in it."""
    with pytest.MonkeyPatch.context() as patch, speaking(*fault.names):
        fault.patch(patch)
        try:
            run_seed(seed)
        except Violation as violation:
            return violation
    return None


def main() -> int:
    """The exit code: 1 where one is not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of faults; all where none is given")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    is_complete = True
    for fault in PUT_BACK + RARE:
        name = fault.patch.__name__
        if options.names and name not in options.names:
            continue
        began = time.process_time()
        for seed in range(options.first, options.first + options.seeds):
            found = find(fault, seed)
            if found is not None:
                cpu_s = time.process_time() - began
                print(f"{name} {fault.names}: seed {seed}, {cpu_s:.0f} s: {found}", flush=True)
                break
        else:
            is_complete = False
            print(f"{name} {fault.names}: not found in {options.seeds} seeds", flush=True)
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
