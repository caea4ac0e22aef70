"""Calls of one classic member: JoinGroup and SyncGroup are repeated until one is answered."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any, Final

import grpc
import grpc.aio

from muster.classic.classic_interruption import Interruption
from muster.classic.classic_membership import ClassicMembership
from muster.classic.classic_options import ClassicOptions
from muster.connection.client import Client
from muster.connection.unary import ask, describe_trouble, find_pushback_s
from muster.errors import PASSING, AuthenticationFailed, JoinRefused
from muster.v1 import classic_pb2, classic_pb2_grpc

BACKOFF_MIN_S: Final = 0.05
BACKOFF_MAX_S: Final = 2.0
_LOG = logging.getLogger("muster")
_GRACE_S: Final = 5.0
_LEAVE_TIMEOUT_S: Final = 5.0
_UNANSWERED_MAX: Final = 3
"""After this many unanswered heartbeats the connection is replaced."""
_HOPELESS: Final = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
"""Statuses that a repeated request would meet again."""


class ClassicCalls:
    """``trouble`` says why the last call failed, for humans."""

    def __init__(
        self,
        client: Client,
        group_id: str,
        options: ClassicOptions,
        membership: ClassicMembership,
        interruption: Interruption,
    ) -> None:
        self.trouble = ""
        self._client = client
        self._group_id = group_id
        self._options = options
        self._membership = membership
        self._interruption = interruption
        self._join_sequences = itertools.count(1)
        self._unanswered = 0

    @property
    def stub(self) -> classic_pb2_grpc.ClassicServiceAsyncStub:
        """The calls on the present connection."""
        return self._client.classic

    async def ask(self, find_method: Callable[[], Any], request: Any) -> Any:
        """The answer to a call that may wait for other members, repeated while that can help."""
        backoff_s = BACKOFF_MIN_S
        timeout_s = self._options.rebalance_timeout_ms / 1000 + _GRACE_S
        while True:
            if isinstance(request, classic_pb2.JoinGroupRequest):
                request.sequence = next(self._join_sequences)
            classic = self.stub
            try:
                answer = await self._interruption.race(find_method()(request, timeout=timeout_s))
            except grpc.aio.AioRpcError as error:
                self.trouble = describe_trouble(error)
                if error.code() is grpc.StatusCode.UNAUTHENTICATED:
                    raise AuthenticationFailed(f"{self._client.target}: {self.trouble}") from error
                pushback_s = find_pushback_s(error)
                if pushback_s is not None:
                    # The client is over its quota, and told when it will not be.
                    await self._interruption.pause(2 * max(pushback_s, BACKOFF_MIN_S))
                    continue
                if error.code() in _HOPELESS:
                    raise JoinRefused(self.trouble) from error
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    await self._replace_connection(classic)
                elif error.code() is grpc.StatusCode.UNAVAILABLE:
                    await self._client.follow_files()
            else:
                if answer is not None and answer.error.error_code not in PASSING:
                    return answer
            await self._interruption.pause(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)

    async def beat(
        self, request: classic_pb2.ClassicHeartbeatRequest, timeout_s: float
    ) -> classic_pb2.ClassicHeartbeatResponse | None:
        """The answer to a heartbeat, or ``None``; it is not repeated."""
        classic = self.stub
        try:
            answer = await ask(classic.Heartbeat, request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            self.trouble = describe_trouble(error)
            self._unanswered += error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if self._unanswered >= _UNANSWERED_MAX:
                await self._replace_connection(classic)
            elif error.code() is grpc.StatusCode.UNAVAILABLE:
                await self._client.follow_files()
            return None
        self._unanswered = 0
        response: classic_pb2.ClassicHeartbeatResponse = answer
        return response

    async def replace_if_unanswered(self) -> None:
        """Replace the connection if the last heartbeat was not answered: the lease has ended."""
        if self._unanswered:
            await self._replace_connection(self.stub)

    async def _replace_connection(self, classic: classic_pb2_grpc.ClassicServiceStub) -> None:
        """The connection may be half-open: nothing on it is answered."""
        self._unanswered = 0
        await self._client.replace_silent(classic)

    async def leave(self, timeout_s: float = _LEAVE_TIMEOUT_S) -> None:
        """Leave the group; if the request is lost, the group waits for the end of the session."""
        membership, options = self._membership, self._options
        membership.has_left = True
        leaving = classic_pb2.LeavingMember(
            member_id=membership.member_id,
            instance_id=options.instance_id,
            reason="the member is closed",
        )
        request = classic_pb2.LeaveGroupRequest(
            group_id=self._group_id, members=[leaving], client_id=options.client_id
        )
        try:
            await ask(self.stub.LeaveGroup, request, timeout=timeout_s)
        except grpc.aio.AioRpcError:
            _LOG.warning(
                "leave_unanswered group=%s member=%s", self._group_id, membership.member_id
            )
