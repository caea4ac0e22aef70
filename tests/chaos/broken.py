"""Versions of the code without one of its protections: the chaos must find each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any, Final
from unittest import mock

from coordinator.core.deadlines import liveness
from coordinator.core.deadlines.member_liveness import MemberLiveness
from coordinator.service.calls.sequences import NO_NUMBER, Noted, Sequences
from coordinator.service.session.session import Session
from coordinator.service.streams.sessions import LatestJoin, MemberKey, SessionRegistry, Superseded
from muster.commit_order import CommitOrder
from muster.connection.lease import ClassicLease
from muster.offsets import Claim

Patch = tuple[Any, str, Callable[..., Any]]


def _enter_as_handled(
    self: SessionRegistry,
    key: MemberKey,
    session: Superseded,
    join_id: int,
    incarnation: int,
    principal: str,
) -> bool:
    older = self._owners.get(key)
    self._owners[key] = session
    self._latest[key] = LatestJoin(join_id, session.number, incarnation, principal)
    if older is not None and older is not session:
        older.supersede(key)
    return True


@asynccontextmanager
async def _at_once(self: CommitOrder, partitions: object) -> AsyncIterator[None]:
    yield


def _without_lease(entry: MemberLiveness) -> int:
    return 0


def _nothing(*_: object) -> None:
    return None


def _in_time(*_: object) -> Noted:
    return NO_NUMBER


def _session_alone(self: ClassicLease) -> float:
    return self._renewed_at + self._session_s


BROKEN: Final[Mapping[str, tuple[Patch, ...]]] = {
    "late commits count": ((Session, "_check_speaks", _nothing),),
    "the last join handled speaks": ((SessionRegistry, "enter", _enter_as_handled),),
    "rebalance timeouts know no lease": ((liveness, "compute_lease_end_ms", _without_lease),),
    "classic leases know no rebalance": ((ClassicLease, "compute_deadline", _session_alone),),
    "late unary requests count": ((Sequences, "note", _in_time),),
    "commits overtake": ((CommitOrder, "turn", _at_once),),
    "repeated commits do not look": ((Claim, "check", lambda self: self._offsets),),
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Everything within runs without this protection."""
    with ExitStack() as stack:
        for target, attribute, replacement in BROKEN[name]:
            stack.enter_context(mock.patch.object(target, attribute, replacement))
        yield
