"""Carries one ``Session`` over its gRPC stream: a reader, a writer, and how they end."""

from __future__ import annotations

import asyncio
import logging
from typing import TypeAlias

import grpc
import grpc.aio

from coordinator.service.door import Door
from coordinator.service.handlers import MALFORMED, MALFORMED_MESSAGE
from coordinator.service.session import Session, SessionViolation
from muster.v1 import group_pb2

Context: TypeAlias = grpc.aio.ServicerContext[group_pb2.SessionRequest, group_pb2.SessionResponse]

_LOG = logging.getLogger(__name__)


class SessionStream:
    """One call of ``GroupService.Session``."""

    def __init__(self, door: Door, context: Context) -> None:
        self._context = context
        self._changed = asyncio.Event()
        self._progress = asyncio.Event()
        self._session = Session(door, context.peer(), self._changed.set)

    async def run(self) -> None:
        """Returns when the stream is to end; raises ``SessionViolation`` where the client erred."""
        reader = asyncio.create_task(self._read())
        writer = asyncio.create_task(self._write())
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
            if reader.done():
                reader.result()
                self._session.end()
            await writer
        finally:
            self._session.close()
            reader.cancel()
            writer.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)

    async def _read(self) -> None:
        session = self._session
        while not session.is_stopping:
            request = await self._context.read()
            if request is MALFORMED:
                raise SessionViolation(MALFORMED_MESSAGE)
            if not isinstance(request, group_pb2.SessionRequest):
                return
            session.receive(request)
            while session.is_busy:
                # Not reading makes HTTP/2 hold the client back.
                self._progress.clear()
                await self._progress.wait()

    async def _write(self) -> None:
        session = self._session
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                while (message := session.next_message()) is not None:
                    await self._context.write(message)
                    self._progress.set()
                if session.is_ending and session.is_idle:
                    if session.is_stopping:
                        closing = group_pb2.SessionResponse(closing=group_pb2.Closing())
                        await self._context.write(closing)
                    return
        except (grpc.aio.InternalError, grpc.aio.UsageError) as error:
            # The client went away in the middle of a write.
            _LOG.debug("session_write_failed: %s", error)


async def serve_session(door: Door, context: Context) -> None:
    """Serves one session stream until either side ends it."""
    try:
        await SessionStream(door, context).run()
    except SessionViolation as violation:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(violation))
