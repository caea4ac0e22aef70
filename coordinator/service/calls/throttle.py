"""Client quotas over gRPC: what is over a quota is refused, and told when to come again.

Calls that keep members alive are never refused: an answer to one comes later instead. What makes
members or groups, and commits, is refused with RESOURCE_EXHAUSTED or, on a session, with
THROTTLING_QUOTA_EXCEEDED; it has changed nothing.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from coordinator.runtime.api import Coordinator
from coordinator.service.calls.grpc_caller import compute_caller
from model.caller import Caller
from model.errors import ThrottlingQuotaExceeded
from model.ids import GroupId, MemberId
from security.quotas.address_limits import NO_LIMIT, AddressLimits
from security.quotas.client_quotas import ClientQuotas, Work
from security.quotas.holdings import Held

DOOR: Final = "grpc"
_MAKES_MEMBERS: Final = ("Heartbeat", "JoinGroup")
_KEEPS_MEMBERS: Final = ("Heartbeat", "SyncGroup", "LeaveGroup")
_OF_MEMBERS: Final = ("GroupService", "ClassicService")
JOIN_EPOCH: Final = 0
_ID_CHARS_MAX: Final = 32_767


class TooManySessions(Exception):
    """The address has as many open sessions as it may have."""


class Throttle:
    """The quotas of the gRPC door. ``sessions``: how many may be open of each address."""

    def __init__(
        self,
        coordinator: Coordinator,
        quotas: ClientQuotas | None = None,
        sessions: AddressLimits = NO_LIMIT,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._coordinator = coordinator
        self._quotas = quotas if quotas is not None else ClientQuotas()
        self._sessions_most = sessions
        self._now = now
        self._sessions: Counter[str] = Counter()

    # -------------------------------------------------------------------------------- sessions

    def open_session(self, host: str) -> str:
        """Count a session; returns what to close. Raises ``TooManySessions``."""
        opened, most = self._sessions_most.find(host)
        if self._sessions[opened] >= most:
            raise TooManySessions(
                f"max.connections.per.ip: {most} sessions are open from this address"
            )
        self._sessions[opened] += 1
        return opened

    def close_session(self, opened: str) -> None:
        """Count it no more."""
        self._sessions[opened] -= 1
        if not self._sessions[opened]:
            del self._sessions[opened]

    # ------------------------------------------------------------------------------- requests

    @property
    def is_active(self) -> bool:
        """Whether requests have to be looked at at all."""
        return self._quotas.is_active

    def check(self, caller: Caller, work: Work, held: Held | None = None) -> None:
        """Note a request that may be refused, and the group or member that it may make.

        Raises ``ThrottlingQuotaExceeded`` for one over a rate, which is not noted, and what
        ``Holdings.check`` raises.
        """
        if not self.is_active:
            return
        now = self._now()
        meter = self._quotas.find_meter(caller, now)
        wait_s = meter.compute_wait_s(work, now)
        if wait_s:
            self._quotas.note_throttled(DOOR, wait_s)
            raise ThrottlingQuotaExceeded(
                "The client is over its quota: come again later.", math.ceil(wait_s * 1_000)
            )
        if held is not None:
            self._quotas.check_held(caller, meter, held, self._is_there, now)
        meter.note(work, now)

    def note(self, caller: Caller, held: Held | None = None) -> float:
        """Note a request that is not refused; for how many seconds the client is throttled."""
        if not self.is_active:
            return 0.0
        now = self._now()
        meter = self._quotas.find_meter(caller, now)
        if held is not None:
            self._quotas.observe_held(caller, meter, held, self._is_there, now)
        throttle_s = meter.note(Work.REQUEST, now)
        if throttle_s:
            self._quotas.note_throttled(DOOR, throttle_s)
        return throttle_s

    async def admit(self, service: str, method: str, request: Any, peer: str) -> None:
        """Note a unary call, and wait if it has to come later; raises what ``check`` raises."""
        if not self.is_active:
            return
        caller = compute_caller(peer, getattr(request, "client_id", ""))
        is_of_members = service in _OF_MEMBERS
        if is_of_members and method in _KEEPS_MEMBERS and not _makes_member(service, request):
            throttle_s = self.note(caller, _find_member(request))
            if throttle_s:
                await asyncio.sleep(throttle_s)
        elif is_of_members and method in _MAKES_MEMBERS:
            self.check(caller, Work.JOIN, _find_member(request))
        elif is_of_members and method == "CommitOffsets":
            self.check(caller, Work.COMMIT, _make_held(request.group_id, None))
        else:
            self.check(caller, Work.REQUEST)

    def _is_there(self, held: Held) -> bool:
        if held.member_id is None:
            return self._coordinator.holds_group(held.group_id)
        return self._coordinator.holds_member(held.group_id, held.member_id)


def _makes_member(service: str, request: Any) -> bool:
    """Whether it is the first Heartbeat of a member."""
    return service == "GroupService" and request.member_epoch == JOIN_EPOCH


def _find_member(request: Any) -> Held | None:
    """The member that a call speaks for; a LeaveGroup may speak for many."""
    member_id = getattr(request, "member_id", None)
    return None if member_id is None else _make_held(request.group_id, member_id)


def _make_held(group_id: str, member_id: str | None) -> Held | None:
    """Nothing for ids that nobody can have: what is noted is kept for a while."""
    if max(len(group_id), len(member_id or "")) > _ID_CHARS_MAX:
        return None
    return Held(GroupId(group_id), None if member_id is None else MemberId(member_id))
