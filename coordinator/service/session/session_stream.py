"""Carries one ``Session`` over its gRPC stream: a reader, a writer, and how they end."""

from __future__ import annotations

import asyncio
import logging
from typing import TypeAlias

import grpc
import grpc.aio

from coordinator.service.calls.grpc_caller import compute_client_host
from coordinator.service.calls.handlers import MALFORMED, MALFORMED_MESSAGE
from coordinator.service.calls.services import Services
from coordinator.service.calls.throttle import TooManySessions
from coordinator.service.session.session import Session, SessionViolation
from coordinator.service.streams.session_turns import FIRST_ACTIONS
from muster.v1 import group_pb2

Context: TypeAlias = grpc.aio.ServicerContext[group_pb2.SessionRequest, group_pb2.SessionResponse]

_LOG = logging.getLogger(__name__)


class UnreadAnswers(Exception):
    """All sessions together hold too many unsent bytes, and this one the most."""


class SessionStream:
    """One call of ``GroupService.Session``."""

    def __init__(self, services: Services, context: Context) -> None:
        self._context = context
        self._changed = asyncio.Event()
        self._progress = asyncio.Event()
        self._turns = services.turns
        self._cut = asyncio.Event()
        self._share = services.backlog.open(self._cut.set)
        self._session = Session(services, context.peer(), self._changed.set, self._share)

    async def run(self) -> None:
        """Return when the stream is to end.

        Raises ``SessionViolation`` if the client broke the rules, and ``UnreadAnswers``.
        """
        # Not with the first message: if the stream ends during that write, gRPC sends the metadata
        # again with the status, fails, and leaves the client without a status.
        try:
            await self._context.send_initial_metadata(())
        except (grpc.aio.InternalError, grpc.aio.UsageError) as error:
            _LOG.debug("session_begin_failed: %s", error)
            return
        reader = asyncio.create_task(self._read())
        writer = asyncio.create_task(self._write())
        cut = asyncio.create_task(self._cut.wait())
        try:
            await asyncio.wait((reader, writer, cut), return_when=asyncio.FIRST_COMPLETED)
            if cut.done():
                raise UnreadAnswers
            if reader.done():
                reader.result()
                self._session.end()
            await asyncio.wait((writer, cut), return_when=asyncio.FIRST_COMPLETED)
            if not writer.done():
                raise UnreadAnswers
            writer.result()
        finally:
            self._session.close()
            self._share.close()
            for task in (reader, writer, cut):
                task.cancel()
            await asyncio.gather(reader, writer, cut, return_exceptions=True)

    async def _read(self) -> None:
        session = self._session
        while not session.is_stopping:
            request = await self._context.read()
            if request is MALFORMED:
                raise SessionViolation(MALFORMED_MESSAGE)
            if not isinstance(request, group_pb2.SessionRequest):
                return
            if len(request.actions) > FIRST_ACTIONS:
                await self._turns.take_if_others_wait()
            for _ in session.receive(request):
                await self._turns.take()
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
    except UnreadAnswers:
        message = "grpc.stream.total.bytes is exceeded, and this session holds the most of it"
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
    finally:
        services.throttle.close_session(opened)
