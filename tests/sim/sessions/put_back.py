"""Faults of the SDK and its doors that were mended, put back one at a time.

Each undoes one mend and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import pytest

import muster.connection.client
import muster.connection.unary
from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.deadlines.member_liveness import MemberLiveness
from coordinator.runtime.runtime import Runtime
from coordinator.service.calls.sequences import NO_NUMBER, Sequences
from coordinator.service.session.session import Session
from coordinator.service.streams.sessions import SessionRegistry
from model.caller import INTERNAL
from model.commands.consumer import Deadline, ExpireMember
from model.ids import GroupId, MemberId
from muster.commit_order import CommitOrder
from muster.connection.lease import ClassicLease, Lease
from muster.connection.stream import Stream
from muster.engine import Engine
from muster.member_sender import MemberSender
from muster.membership import Status
from muster.offsets import Claim
from tests.sim.broken.put_back import PutBack


def commits_of_lost_grants(patch: pytest.MonkeyPatch) -> None:
    """A commit that is tried again does not ask whether the partition is still the member's."""
    patch.setattr(Claim, "check", lambda self: dict(self._offsets))


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


def late_claims_count(patch: pytest.MonkeyPatch) -> None:
    """The same; what such a Join says that it owns acknowledges a revocation."""
    late_joins_count(patch)


def rebalances_end_before_leases(patch: pytest.MonkeyPatch) -> None:
    """A member is put out as its rebalance timeout passes, whatever it was promised."""

    def hasty(self: Liveness, entry: MemberLiveness, epoch: int, now_ms: int, found: Any) -> None:
        who = INTERNAL, entry.group_id, entry.member_id
        found.append(ExpireMember(*who, Deadline.REBALANCE, epoch))
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
    patch.setattr(Sequences, "note", lambda self, key, sequence: NO_NUMBER)


def cancelled_closes_leave_ghosts(patch: pytest.MonkeyPatch) -> None:
    """A member whose join or close was cancelled leaves only where its Join is not answered."""
    detach = Engine.detach

    def silent(self: Engine) -> None:
        if self.membership.status is Status.MEMBER:
            self._sender._joined_on = None
        detach(self)

    patch.setattr(Engine, "detach", silent)
    patch.setattr(Stream, "finish", Stream.shut)


def expired_members_leave_ghosts(patch: pytest.MonkeyPatch) -> None:
    """A member whose lease has ended by its own clock is gone without a word."""
    leave = MemberSender.leave_if_joined

    def silent(self: MemberSender) -> None:
        if self.holds or self._membership.status is Status.JOINING:
            leave(self)

    patch.setattr(MemberSender, "leave_if_joined", silent)


def closed_connections_cancel(patch: pytest.MonkeyPatch) -> None:
    """A call whose connection is closed under it ends as if somebody had cancelled."""

    async def ask(method: Any, request: Any, **options: Any) -> Any:
        return await method(request, **options)

    mended = muster.connection.unary.ask
    # What is imported only later would have the broken one for good.
    import_module("tests.sim.sessions.run")
    for name, module in tuple(sys.modules.items()):
        if name.startswith("muster.") and vars(module).get("ask") is mended:
            patch.setattr(module, "ask", ask)


SESSIONS = (
    PutBack(commits_of_lost_grants, frozenset({"S15", "S11"}), 503, "sessions"),
    PutBack(commits_beside_each_other, frozenset({"S15"}), 377, "sessions"),
    PutBack(late_commits_count, frozenset({"S15"}), 2, "sessions"),
    PutBack(late_joins_count, frozenset({"renamed"}), 2, "sessions"),
    PutBack(late_claims_count, frozenset({"S2"}), 120, "sessions"),
    PutBack(late_leaves_count, frozenset({"S2"}), 4, "sessions"),
    PutBack(rebalances_end_before_leases, frozenset({"S2"}), 11, "sessions"),
    PutBack(classic_leases_of_sessions_alone, frozenset({"S2"}), 20, "sessions"),
    PutBack(promises_not_noted, frozenset({"S2"}), 39, "sessions"),
    PutBack(leases_forgotten_by_a_restart, frozenset({"S2"}), None, "sessions"),
    PutBack(late_unary_commits_count, frozenset({"S15"}), 78, "sessions"),
    PutBack(cancelled_closes_leave_ghosts, frozenset({"ghost"}), 246, "sessions"),
    PutBack(expired_members_leave_ghosts, frozenset({"ghost"}), 649, "sessions"),
    PutBack(closed_connections_cancel, frozenset({"cancelled"}), 1, "sessions"),
)
