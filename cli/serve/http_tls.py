"""TLS of the HTTP listener: handshakes with limits, and keys that can be replaced."""

from __future__ import annotations

import asyncio
from typing import Any

from cli.serve.certificates import Certificates
from cli.serve.listening import add_certificates
from cli.settings import Resolved
from cli.settings.door_rules import HTTP
from security.tls.server_contexts import TlsContexts


def find_http_tls(resolved: Resolved, certificates: Certificates) -> TlsContexts | None:
    """The keys of the HTTP listener; ``None`` if it has no TLS. Raises ``CommandError``."""
    endpoint = resolved.endpoint(HTTP)
    if not endpoint.protocol.uses_tls:
        return None
    return add_certificates(resolved, endpoint, HTTP, certificates)


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


class TlsFront(asyncio.Protocol):
    """One accepted connection until its handshake is done; ``behind`` is served then."""

    def __init__(self, behind: Any, handshakes: Handshakes) -> None:
        self._behind = behind
        self._handshakes = handshakes
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # Until its TLS protocol is there nobody would take what arrives.
        transport.pause_reading()
        self._handshakes.add(self)
        self._task = asyncio.get_running_loop().create_task(self._shake_hands(transport))

    def connection_lost(self, exc: Exception | None) -> None:
        self._handshakes.remove(self)

    def abort(self) -> None:
        """Close the connection."""
        self._handshakes.remove(self)
        if self._transport is not None:
            self._transport.abort()

    async def _shake_hands(self, transport: asyncio.Transport) -> None:
        waiting = _Waiting()
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                transport,
                waiting,
                self._handshakes.contexts.current.context,
                server_side=True,
                ssl_handshake_timeout=self._handshakes.limit_s,
            )
        except (OSError, asyncio.CancelledError):
            # Also for a handshake that fails or takes too long.
            transport.abort()
            return
        finally:
            self._handshakes.remove(self)
        if encrypted is None or waiting.is_lost:
            return
        encrypted.set_protocol(self._behind)
        self._behind.connection_made(encrypted)
        for data in waiting.received:
            self._behind.data_received(data)
        if waiting.is_eof and self._behind.eof_received() is None:
            encrypted.close()


class _Waiting(asyncio.Protocol):
    """Keeps what a client sends with the end of its handshake, until somebody is there for it."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.is_eof = self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.received.append(data)

    def eof_received(self) -> bool:
        self.is_eof = True
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True


def make_front(behind: type[asyncio.Protocol], handshakes: Handshakes) -> type[asyncio.Protocol]:
    """The protocol of accepted connections, which takes what the one ``behind`` it takes."""

    class _Front(TlsFront):
        def __init__(self, **rest: Any) -> None:
            super().__init__(behind(**rest), handshakes)

    return _Front
