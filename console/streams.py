"""Server-sent events: a bounded number of streams, which end with the session."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from console.refusals import Refused
from coordinator.service.credentials.peer_host import compute_client_network

STREAMS_MAX: Final = 100
STREAMS_OF_HOST_MAX: Final = 60
"""Of all connections of the HTTP listener, some are left for everything else."""

QUIET_S: Final = 10.0
"""After such a silence a comment is sent, and it is looked whether the session goes on."""

_COMMENT: Final = b":\n\n"
_SIGNED_OUT: Final = b"event: signed-out\ndata:\n\n"


class EventStreams:
    """Counts the open streams, and makes them."""

    __slots__ = ("_of_host", "_quiet_s")

    def __init__(self, quiet_s: float = QUIET_S) -> None:
        self._of_host: Counter[str] = Counter()
        self._quiet_s = quiet_s

    def respond(
        self, peer: str, is_current: Callable[[], bool], events: AsyncGenerator[bytes, None]
    ) -> Response:
        """Send events that are encoded already, until the client goes or ``is_current`` ends.

        Raises ``Refused`` if too many are open.
        """
        host = compute_client_network(peer)
        if self._of_host.total() >= STREAMS_MAX or self._of_host[host] >= STREAMS_OF_HOST_MAX:
            raise Refused(503, "Too many pages are open that follow the server: close some.")
        return StreamingResponse(
            self._follow(host, is_current, events), media_type="text/event-stream"
        )

    async def _follow(
        self, host: str, is_current: Callable[[], bool], events: AsyncGenerator[bytes, None]
    ) -> AsyncIterator[bytes]:
        self._of_host[host] += 1
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
            self._of_host[host] -= 1
            if not self._of_host[host]:
                del self._of_host[host]


def encode_event(name: str, data: str, event_id: str = "") -> bytes:
    """An event; ``data`` may have several lines, the names and ids have none."""
    lines = [f"event: {name}"]
    if event_id:
        lines.append(f"id: {event_id}")
    # Only these end a line of an event; others are text.
    text = data.replace("\r\n", "\n").replace("\r", "\n")
    lines += [f"data: {line}" for line in text.split("\n")]
    return ("\n".join(lines) + "\n\n").encode()
