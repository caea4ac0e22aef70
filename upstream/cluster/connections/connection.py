"""A connection to a broker in Muster's own name: requests are pipelined and answered in order.

A request without an answer after its time ends the connection, and with it all requests on it: a
broker that is half open must not hold anything. A caller that gives up leaves its request behind,
whose answer is dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.codec.client_frames import (
    ClientRequest,
    NoCommonVersion,
    choose_version,
    decode_response,
    encode_request,
    read_correlation_id,
)
from gateway.codec.decoding import DecodeError
from upstream.cluster.cluster import ClusterUnreachable, NotSent, NotServed
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.cluster.connections.frames import read_frame

PATIENCE_MIN_MS: Final = 1_000
"""A caller with less time gives up alone: its request does not end a connection that others use."""
_CORRELATION_IDS: Final = 1 << 31


@dataclass(slots=True)
class _Unanswered:
    correlation_id: int
    answer: asyncio.Future[bytes]
    timer: asyncio.TimerHandle


class Connection:
    """``versions`` and ``features`` (finalized levels by name) are those of the broker, none yet.

    ``on_closed`` is called once, when nothing more can be asked.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        settings: ClusterSettings,
    ) -> None:
        self.versions: Mapping[int, range] = {}
        self.features: Mapping[str, int] = {}
        self.login_due_s: float | None = None
        """When to log in again (the loop's time), before the broker ends the session."""
        self.on_closed: Callable[[], None] = lambda: None
        self.trouble: Exception | None = None
        """Why the connection ended, if it was the broker's doing."""
        self._reader = reader
        self._writer = writer
        self._settings = settings
        self._client_id = settings.client_id.encode()
        self._patience_min_ms = min(PATIENCE_MIN_MS, settings.request_timeout_ms)
        self._correlation_id = 0
        self._unanswered: deque[_Unanswered] = deque()
        self._is_retired = False
        self._is_closed = False
        writer.transport.set_write_buffer_limits(high=settings.unsent_bytes_max)
        self._reading = asyncio.create_task(self._read())

    @property
    def is_usable(self) -> bool:
        """Whether something may still be asked."""
        return not (self._is_closed or self._is_retired)

    @property
    def needs_login(self) -> bool:
        """Whether the session is about to end."""
        return (
            self.login_due_s is not None and asyncio.get_running_loop().time() >= self.login_due_s
        )

    @property
    def is_idle(self) -> bool:
        """Whether everything is answered."""
        return not self._unanswered

    async def ask(self, request: ClientRequest, timeout_ms: int) -> Any:
        """Send and return the response entity. Raises ``ClusterUnreachable``."""
        try:
            version = choose_version(request, self.versions)
        except NoCommonVersion as error:
            raise NotServed(str(error)) from None
        return await self.ask_version(request, version, timeout_ms)

    async def ask_version(self, request: ClientRequest, version: int, timeout_ms: int) -> Any:
        """As ``ask``, in this version."""
        answer = self._send(request, version, timeout_ms)
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                await self._writer.drain()
                frame = await answer
        except TimeoutError:
            if timeout_ms >= self._patience_min_ms:
                self._give_up(timeout_ms)
            raise ClusterUnreachable("no answer in time") from None
        except OSError as error:
            self._end(error)
            raise ClusterUnreachable(_describe(error)) from None
        finally:
            _forget(answer)
        return await self._decode(request.key, version, frame)

    def _send(self, request: ClientRequest, version: int, timeout_ms: int) -> asyncio.Future[bytes]:
        if not self.is_usable:
            raise NotSent("the connection is closed")
        if len(self._unanswered) >= self._settings.unanswered_max:
            raise NotSent(f"{len(self._unanswered)} requests are not answered yet")
        loop = asyncio.get_running_loop()
        self._correlation_id = (self._correlation_id + 1) % _CORRELATION_IDS
        frame = encode_request(request, version, self._correlation_id, self._client_id)
        patience_ms = max(timeout_ms, self._patience_min_ms)
        timer = loop.call_later(patience_ms / 1_000, self._give_up, patience_ms)
        answer: asyncio.Future[bytes] = loop.create_future()
        self._unanswered.append(_Unanswered(self._correlation_id, answer, timer))
        self._writer.write(frame)
        return answer

    def _give_up(self, patience_ms: int) -> None:
        self._end(TimeoutError(f"a request was not answered within {patience_ms} ms"))

    async def _decode(self, key: int, version: int, frame: bytes) -> Any:
        steps = decode_response(key, version, frame)
        try:
            while True:
                next(steps)
                await asyncio.sleep(0)
        except StopIteration as end:
            return end.value
        except DecodeError as error:
            self._end(error)
            raise ClusterUnreachable(f"the answer cannot be read: {error}") from None

    async def _read(self) -> None:
        try:
            while True:
                frame = await read_frame(self._reader, self._settings.frame_bytes_max)
                if frame is None:
                    break
                self._take(frame[4:])
        except (OSError, DecodeError, ClusterUnreachable) as error:
            self._end(error)
        else:
            self._end(ConnectionResetError("the broker closed the connection"))

    def _take(self, frame: bytes) -> None:
        correlation_id = read_correlation_id(frame)
        if not self._unanswered or self._unanswered[0].correlation_id != correlation_id:
            raise DecodeError(f"an answer has correlation id {correlation_id}, which is not next")
        first = self._unanswered.popleft()
        first.timer.cancel()
        if not first.answer.done():
            first.answer.set_result(frame)
        if self._is_retired and not self._unanswered:
            self.close()

    def retire(self) -> None:
        """Ask nothing more; close when everything is answered."""
        self._is_retired = True
        if self.is_idle:
            self.close()

    def close(self) -> None:
        """Close; what waits gets ``ClusterUnreachable``."""
        self._end(None)

    def _end(self, trouble: Exception | None) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.trouble = trouble
        if asyncio.current_task() is not self._reading:
            self._reading.cancel()
        # Abort: unsent bytes must not hold a connection that is given up.
        self._writer.transport.abort()
        why = "the connection was closed" if trouble is None else _describe(trouble)
        for each in self._unanswered:
            each.timer.cancel()
            if not each.answer.done():
                each.answer.set_exception(ClusterUnreachable(why))
        self._unanswered.clear()
        self.on_closed()


def _forget(answer: asyncio.Future[bytes]) -> None:
    """Nobody waits for the answer any more: its exception is nobody's news."""
    answer.cancel()
    if not answer.cancelled():
        answer.exception()


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
