"""The part of ``muster.v1.AdminService`` that watches groups."""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import Final, TypeAlias

import grpc
import grpc.aio

from coordinator.service.calls.access import Access
from coordinator.service.calls.grpc_caller import CALLING, compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.services import Services
from coordinator.service.calls.throttle import TooManySessions
from coordinator.service.credentials.peer_host import compute_client_host
from coordinator.service.credentials.refusals import EXPIRED_CREDENTIALS, refuse
from coordinator.service.watch.watched_groups import TooManyWatches
from coordinator.service.wire.decode import decode_any_group_id
from model.access.acls import Operation
from model.ids import GroupId, TopicName
from muster.v1 import admin_pb2

_Context: TypeAlias = grpc.aio.ServicerContext[
    admin_pb2.WatchGroupRequest, admin_pb2.WatchGroupResponse
]

_UNREAD: Final = "grpc.stream.total.bytes is exceeded, and this watch holds the most of it"

_LOG = logging.getLogger(__name__)


class CredentialsEnded(Exception):
    """What has shown who the client is holds no more."""


class GroupWatching:
    """Watches groups. See ``coordinator.service.wire.error_statuses`` for error statuses."""

    _services: Services
    _access: Access

    async def WatchGroup(  # noqa: N802
        self, request: admin_pb2.WatchGroupRequest, context: _Context
    ) -> None:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_any_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.DESCRIBE, group_id)
            try:
                opened = self._services.throttle.open_session(compute_client_host(context.peer()))
            except TooManySessions as refusal:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(refusal))
            try:
                await GroupWatchStream(self._services, group_id, context).run()
            except TooManyWatches as refusal:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(refusal))
            except CredentialsEnded:
                await refuse(context, EXPIRED_CREDENTIALS)
            finally:
                self._services.throttle.close_session(opened)


class GroupWatchStream:
    """One call of ``WatchGroup``: it writes the newest look whenever the last one was taken."""

    def __init__(self, services: Services, group_id: GroupId, context: _Context) -> None:
        self._context = context
        self._access = services.access
        self._watch = services.watched.watch(group_id)
        self._group_id = group_id
        self._heartbeat_s = services.ping_interval_ms / 1_000
        self._heartbeat = admin_pb2.WatchGroupResponse(
            heartbeat_interval_ms=services.ping_interval_ms
        )
        self._identity = CALLING.get()
        self._caller = compute_caller(context.peer(), "", self._identity)
        self._topics: frozenset[TopicName] = frozenset()
        self._cut: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._share = services.backlog.open(partial(_cut, self._cut))

    async def run(self) -> None:
        """Watch until the client goes.

        Raises ``TooManyWatches``, ``CredentialsEnded``, and the ``GroupError`` that a description
        of the group would.
        """
        sending = asyncio.create_task(self._send())
        try:
            await asyncio.wait((sending, self._cut), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
                return
        finally:
            self._share.close()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        await self._context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, _UNREAD)

    async def _send(self) -> None:
        try:
            # See ``SessionStream.run``.
            await self._context.send_initial_metadata(())
            with self._watch as watch:
                while True:
                    look = await watch.next(self._heartbeat_s)
                    if look is not None:
                        self._topics = look.topics
                    self._check()
                    await self._write(self._heartbeat if look is None else look.message)
        except (grpc.aio.InternalError, grpc.aio.UsageError) as error:
            # The client disconnected during a write.
            _LOG.debug("watch_write_failed: %s", error)

    def _check(self) -> None:
        """Rights and credentials may have ended since the last message."""
        expires_at_ms = self._identity.expires_at_ms
        if expires_at_ms is not None and expires_at_ms <= time.time() * 1_000:
            raise CredentialsEnded
        self._access.check_group(self._caller, Operation.DESCRIBE, self._group_id)
        self._access.check_topics(self._caller, Operation.DESCRIBE, self._topics)

    async def _write(self, message: admin_pb2.WatchGroupResponse | bytes) -> None:
        """Returns once gRPC has taken the message: not before the client has read most before."""
        size = len(message) if isinstance(message, bytes) else message.ByteSize()
        self._share.add(size)
        # What is encoded already is sent as it is: see ``handlers``.
        await self._context.write(message)  # type: ignore[arg-type]
        self._share.add(-size)


def _cut(ending: asyncio.Future[None]) -> None:
    """End a stream: see ``session_stream``."""
    if not ending.done():
        ending.set_result(None)
