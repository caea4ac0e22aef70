"""The console in the HTTP server, made when a browser first asks for it."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from cli.settings import Resolved
from cli.settings.listeners.door_rules import HTTP
from coordinator.service.calls.local_calls import LocalCalls

App = Callable[[Any, Any, Any], Awaitable[None]]

_SERVER_ID_CHARS: Final = 12


class ConsoleDoor:
    """Makes the application on a thread: most servers never need its templates."""

    __slots__ = ("_make", "_making")

    def __init__(self, make: Callable[[], App]) -> None:
        self._make = make
        self._making: asyncio.Future[App] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._making is None:
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
        app = await asyncio.shield(self._making)
        await app(scope, receive, send)


def make_console_door(
    resolved: Resolved, calls: LocalCalls, cluster_id: str, versions: Mapping[str, str]
) -> ConsoleDoor:
    """The console that the settings ask for."""
    endpoint = resolved.endpoint(HTTP)
    server_id = hashlib.sha256(cluster_id.encode()).hexdigest()[:_SERVER_ID_CHARS]

    def make() -> App:
        from console.app import make_app
        from console.rendering import Renderer
        from console.signin.browsers import Browsers
        from console.site import Site

        browsers = Browsers(server_id, is_secure=endpoint.protocol.uses_tls)
        return make_app(Site(calls, Renderer(), browsers, versions, _find_names(endpoint.host)))

    return ConsoleDoor(make)


def _find_names(listens_at: str) -> frozenset[str]:
    """What this machine is called, as far as is known without asking anybody."""
    name = socket.gethostname().lower()
    return frozenset({name, name.partition(".")[0], listens_at.lower()} - {""})
