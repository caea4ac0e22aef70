"""Carries one ``Session`` over its gRPC stream: a reader, a writer, and how they end.

A stream may live longer than the token that opened it. When the token ends, nothing more is read
and no member is told anything; the answers to commits are still sent, and then UNAUTHENTICATED,
so that the client opens another stream with a new token.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import Final, TypeAlias

import grpc
import grpc.aio

from coordinator.service.calls.grpc_caller import CALLING
from coordinator.service.calls.handlers import MALFORMED, MALFORMED_MESSAGE
from coordinator.service.calls.services import Services
from coordinator.service.calls.throttle import TooManySessions
from coordinator.service.credentials.peer_host import compute_client_host
from coordinator.service.credentials.refusals import EXPIRED_CREDENTIALS, refuse
from coordinator.service.session.session import Session, SessionViolation
from coordinator.service.streams.session_turns import FIRST_ACTIONS
from muster.v1 import group_pb2

Context: TypeAlias = grpc.aio.ServicerContext[group_pb2.SessionRequest, group_pb2.SessionResponse]

_LOG = logging.getLogger(__name__)

_OWED_S: Final = 1.0
"""How long the answers that are owed may take when the credentials have ended."""
_EXPIRY_LOOK_S: Final = 3_600.0
"""How often a long expiry is looked at: the wall clock may be set meanwhile."""


class UnreadAnswers(Exception):
    """All sessions together hold too many unsent bytes, and this one the most."""


class CredentialsEnded(Exception):
    """What has shown who the client is holds no more."""


def _cut(ending: asyncio.Future[type[Exception]], reason: type[Exception]) -> None:
    """End a stream. It does not refer to the stream, which its own share would then keep alive."""
    if not ending.done():
        ending.set_result(reason)


class SessionStream:
    """One call of ``GroupService.Session``."""

    def __init__(self, services: Services, context: Context) -> None:
        self._context = context
        self._changed = asyncio.Event()
        self._progress = asyncio.Event()
        self._turns = services.turns
        self._cut: asyncio.Future[type[Exception]] = asyncio.get_running_loop().create_future()
        self._share = services.backlog.open(partial(_cut, self._cut, UnreadAnswers))
        identity = CALLING.get()
        self._expires_at_ms = identity.expires_at_ms
        self._expiry: asyncio.TimerHandle | None = None
        self._has_expired = False
        self._session = Session(services, context.peer(), identity, self._changed.set, self._share)

    async def run(self) -> None:
        """Return when the stream is to end.

        Raises ``SessionViolation`` if the client broke the rules, ``UnreadAnswers``, and
        ``CredentialsEnded``.
        """
        # Not with the first message: if the stream ends during that write, gRPC sends the metadata
        # again with the status, fails, and leaves the client without a status.
        try:
            await self._context.send_initial_metadata(())
        except (grpc.aio.InternalError, grpc.aio.UsageError) as error:
            _LOG.debug("session_begin_failed: %s", error)
            return
        self._watch_expiry()
        reader = asyncio.create_task(self._read())
        writer = asyncio.create_task(self._write())
        cut = self._cut
        try:
            await asyncio.wait((reader, writer, cut), return_when=asyncio.FIRST_COMPLETED)
            if cut.done():
                raise cut.result()
            if reader.done():
                reader.result()
                self._session.end()
            await asyncio.wait((writer, cut), return_when=asyncio.FIRST_COMPLETED)
            if not writer.done():
                raise cut.result()
            writer.result()
            if self._has_expired:
                raise CredentialsEnded
        finally:
            if self._expiry is not None:
                self._expiry.cancel()
            self._session.close()
            self._share.close()
            for task in (reader, writer, cut):
                task.cancel()
            await asyncio.gather(reader, writer, cut, return_exceptions=True)

    def _watch_expiry(self) -> None:
        if self._expires_at_ms is None:
            return
        loop = asyncio.get_running_loop()
        left_s = self._expires_at_ms / 1_000 - time.time()
        if left_s > 0:
            self._expiry = loop.call_later(min(left_s, _EXPIRY_LOOK_S), self._watch_expiry)
            return
        self._has_expired = True
        self._session.expire()
        self._expiry = loop.call_later(_OWED_S, _cut, self._cut, CredentialsEnded)

    async def _read(self) -> None:
        session = self._session
        while not session.is_stopping:
            request = await self._context.read()
            if self._has_expired:
                return
            if request is MALFORMED:
                raise SessionViolation(MALFORMED_MESSAGE)
            if not isinstance(request, group_pb2.SessionRequest):
                return
            if len(request.actions) > FIRST_ACTIONS:
                await self._turns.take_if_others_wait()
            for _ in session.receive(request):
                await self._turns.take()
                if self._has_expired:
                    return
            throttle_s = session.take_throttle_s()
            if throttle_s:
                await asyncio.sleep(throttle_s)
            while session.is_busy:
                # While nothing is read, HTTP/2 flow control stops the client.
                self._progress.clear()
                await self._progress.wait()

    async def _write(self) -> None:
        session = self._session
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                while (message := session.next_message()) is not None:
                    size = message.ByteSize()
                    self._share.add(size)
                    await self._context.write(message)
                    self._share.add(-size)
                    self._progress.set()
                self._progress.set()
                if session.is_ending and session.is_idle:
                    if session.is_stopping:
                        closing = group_pb2.SessionResponse(closing=group_pb2.Closing())
                        await self._context.write(closing)
                    return
        except (grpc.aio.InternalError, grpc.aio.UsageError) as error:
            # The client disconnected during a write.
            _LOG.debug("session_write_failed: %s", error)


async def serve_session(services: Services, context: Context) -> None:
    """Serve one session stream until either side ends it."""
    try:
        opened = services.throttle.open_session(compute_client_host(context.peer()))
    except TooManySessions as refusal:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(refusal))
    try:
        await SessionStream(services, context).run()
    except SessionViolation as violation:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(violation))
    except CredentialsEnded:
        await refuse(context, EXPIRED_CREDENTIALS)
    except UnreadAnswers:
        message = "grpc.stream.total.bytes is exceeded, and this session holds the most of it"
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
    finally:
        services.throttle.close_session(opened)
