"""Server-sent events: a bounded number of streams, which end with the session."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from console.refusals import Refused
from coordinator.service.credentials.peer_host import compute_client_network

STREAMS_MAX: Final = 100
"""Of all connections of the HTTP listener, some are left for everything else."""

QUIET_S: Final = 10.0
"""After such a silence a comment is sent, and it is looked whether the session goes on."""

_COMMENT: Final = b":\n\n"
_SIGNED_OUT: Final = b"event: signed-out\ndata:\n\n"


def compute_host_limit(most: int) -> int:
    """How many streams of ``most`` one host may have."""
    return -(-most * 3 // 5)


class EventStreams:
    """Counts the open streams, and makes them."""

    __slots__ = ("_most", "_of_host", "_quiet_s")

    def __init__(self, most: int = STREAMS_MAX, *, quiet_s: float = QUIET_S) -> None:
        """``most`` of all hosts; one host may have three fifths of them."""
        self._most = most
        self._of_host: Counter[str] = Counter()
        self._quiet_s = quiet_s

    def respond(
        self, peer: str, is_current: Callable[[], bool], events: AsyncGenerator[bytes, None]
    ) -> Response:
        """Send events that are encoded already, until the client goes or ``is_current`` ends.

        The stream counts from when the response is sent. Raises ``Refused`` if too many are open.
        """
        host = compute_client_network(peer)
        of_host = compute_host_limit(self._most)
        if self._of_host.total() >= self._most or self._of_host[host] >= of_host:
            raise Refused(
                503,
                "Too many pages are open that follow the server (console.streams.max): close some.",
            )
        return _EventResponse(self._of_host, host, self._follow(is_current, events))

    async def _follow(
        self, is_current: Callable[[], bool], events: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        coming: asyncio.Task[Any] = asyncio.ensure_future(anext(events, None))
        try:
            while True:
                await asyncio.wait((coming,), timeout=self._quiet_s)
                if not is_current():
                    yield _SIGNED_OUT
                    return
                if not coming.done():
                    yield _COMMENT
                    continue
                event = coming.result()
                if event is None:
                    return
                coming = asyncio.ensure_future(anext(events, None))
                yield event
        finally:
            coming.cancel()
            await asyncio.wait((coming,))
            await events.aclose()


class _EventResponse(Response):
    """Sends events until the client goes.

    Starlette's response for streams cancels them again in each turn of the event loop, so that they
    cannot wait until what they ask of others is closed.
    """

    media_type = "text/event-stream"

    def __init__(
        self, of_host: Counter[str], host: str, events: AsyncGenerator[bytes, None]
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._of_host = of_host
        self._host = host
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await super().__call__(scope, receive, send)
            return
        self._of_host[self._host] += 1
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_wait_until_gone(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait((sending, leaving))
            self._of_host[self._host] -= 1
            if not self._of_host[self._host]:
                del self._of_host[self._host]
        if not sending.cancelled():
            sending.result()

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        async with aclosing(self._events) as events:
            await send(start)
            async for event in events:
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def encode_event(name: str, data: str, event_id: str = "") -> bytes:
    """An event; ``data`` may have several lines, the names and ids have none."""
    lines = [f"event: {name}"]
    if event_id:
        lines.append(f"id: {event_id}")
    # Only these end a line of an event; others are text.
    text = data.replace("\r\n", "\n").replace("\r", "\n")
    lines += [f"data: {line}" for line in text.split("\n")]
    return ("\n".join(lines) + "\n\n").encode()
