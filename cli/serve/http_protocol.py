"""Connections of the HTTP server, with limits on what a client may keep busy, and for how long."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from gateway.connection.listener import ACCEPTED
from security.quotas.addresses import find_address


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Limits on clients: connections, and milliseconds to send the head of a request.

    As long may a client not read what is sent to it. ``backlog``: connections that may wait to be
    accepted, ``accepted`` of them in one iteration of the event loop.
    """

    connections_max: int = 256
    request_timeout_ms: int = 10_000
    backlog: int = 128
    accepted: int = ACCEPTED


class _Open:
    """The open connections by address, in the order in which they came."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._of: dict[str, dict[_Connection, None]] = {}

    def add(self, connection: _Connection) -> bool:
        """Count a connection. ``False`` if there is no room for it.

        Who has most makes room for others, but no request that has come whole is ended for it:
        somebody who opens many connections cannot keep others out.
        """
        own = self._of.get(connection.network, {})
        if self._total >= self._most:
            largest = max(self._of.values(), key=len)
            waiting = next((each for each in largest if not each.has_whole), None)
            if len(largest) <= len(own) + 1 or waiting is None:
                return False
            self.remove(waiting)
            waiting.transport.abort()
        self._of.setdefault(connection.network, {})[connection] = None
        self._total += 1
        return True

    def remove(self, connection: _Connection) -> None:
        """Count it no more."""
        own = self._of.get(connection.network)
        if own is None or own.pop(connection, self) is self:
            return
        self._total -= 1
        if not own:
            del self._of[connection.network]


class _Connection(H11Protocol):
    """uvicorn's protocol with limits."""

    opened: _Open
    limit_s: float
    network = ""
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    @property
    def is_serving(self) -> bool:
        """Whether a request has come that is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def has_whole(self) -> bool:
        """Whether the client has to send no more of the request that is served."""
        return self.is_serving and not self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer = transport.get_extra_info("peername")
        self.network = find_address(str(peer[0])).network if peer else ""
        if not self.opened.add(self):
            transport.abort()
            return
        super().connection_made(transport)
        certificate = _find_certificate(transport)
        if certificate is not None:
            self.app = _add_certificate(self.app, certificate)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.opened.remove(self)
        self._end_wait()
        self._end_write()
        if self.transport is not None:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport is None:
            return
        super().data_received(data)
        if self.is_serving:
            self._end_wait()
        elif self._head_timer is None:
            self._await_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._end_write()
        self._write_timer = self.loop.call_later(self.limit_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._end_write()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        # Closing waits until the client has read what is left.
        self._end_write()
        self._write_timer = self.loop.call_later(self.limit_s, self.transport.abort)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.limit_s, self.transport.abort)

    def _end_wait(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_write(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def make_protocol(settings: HttpSettings) -> type[H11Protocol]:
    """The protocol of one listener."""

    class _Limited(_Connection):
        opened = _Open(settings.connections_max)
        limit_s = settings.request_timeout_ms / 1_000

    return _Limited


def _find_certificate(transport: asyncio.Transport) -> str | None:
    """The client's certificate in PEM, which the handshake has checked; ``None`` without one."""
    tls = transport.get_extra_info("ssl_object")
    der = None if tls is None else tls.getpeercert(binary_form=True)
    return None if der is None else ssl.DER_cert_to_PEM_cert(der)


def _add_certificate(app: Any, certificate: str) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """The application, told of the certificate as ASGI's extension for TLS says."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        extensions = {**scope.get("extensions", {}), "tls": {"client_cert_chain": [certificate]}}
        await app({**scope, "extensions": extensions}, receive, send)

    return serve
