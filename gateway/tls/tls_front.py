"""TLS in front of any protocol: handshakes with limits, and keys that can be replaced.

The listeners of the Kafka wire have ``handshake``, which shares the loop among many of them.
"""

from __future__ import annotations

import asyncio
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from security.tls.server_contexts import TlsContexts

_BUFFER_BYTES: Final = 32 * 1024
"""Of each connection. asyncio's 256 KiB are made anew for each that a flood opens."""


class Handshakes:
    """The connections of one listener whose handshake is not finished.

    ``limit_s``: how long one may take. With more than ``most`` the oldest makes room: somebody who
    only opens connections cannot keep others out.
    """

    def __init__(self, contexts: TlsContexts, most: int, limit_s: float) -> None:
        self.contexts = contexts
        self.limit_s = limit_s
        self._most = most
        self._open: dict[TlsFront, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, front: TlsFront) -> None:
        """Count a new connection."""
        self._open[front] = None
        if len(self._open) > self._most:
            next(iter(self._open)).abort()

    def remove(self, front: TlsFront) -> None:
        """A handshake has ended."""
        self._open.pop(front, None)

    def abort(self) -> None:
        """The server stops."""
        for front in tuple(self._open):
            front.abort()


class TlsFront(SSLProtocol):
    """One accepted connection; ``behind`` makes what is served once its handshake is done.

    It is the connection's protocol from the first byte on. ``start_tls`` would take its place too
    late: uvloop reads before, and what it reads would be lost.
    """

    max_size = _BUFFER_BYTES

    def __init__(self, behind: Callable[[], asyncio.Protocol], handshakes: Handshakes) -> None:
        # The stub knows neither that nobody need wait, nor parts of a second.
        options: Any = {"waiter": None, "ssl_handshake_timeout": handshakes.limit_s}
        super().__init__(
            asyncio.get_running_loop(),
            _Waiting(self, behind, handshakes),
            handshakes.contexts.current.context,
            server_side=True,
            **options,
        )
        self._handshakes = handshakes
        self._accepted: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._accepted = transport
        self._handshakes.add(self)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._accepted = None
        self._handshakes.remove(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        """Close the connection."""
        self._handshakes.remove(self)
        if self._accepted is not None:
            cast(asyncio.Transport, self._accepted).abort()


class _Waiting(asyncio.Protocol):
    """Stands for the protocol ``behind`` until the handshake is done."""

    def __init__(
        self, front: TlsFront, behind: Callable[[], asyncio.Protocol], handshakes: Handshakes
    ) -> None:
        self._front = front
        self._behind = behind
        self._handshakes = handshakes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._handshakes.remove(self._front)
        behind = self._behind()
        transport.set_protocol(behind)
        behind.connection_made(transport)


def make_front(
    behind: type[asyncio.Protocol], handshakes: Handshakes
) -> type[asyncio.BufferedProtocol]:
    """The protocol of accepted connections, which takes what the one ``behind`` it takes."""

    class _Front(TlsFront):
        def __init__(self, **rest: Any) -> None:
            super().__init__(partial(behind, **rest), handshakes)

    return _Front
