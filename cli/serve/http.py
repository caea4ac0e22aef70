"""HTTP for operators, on the server's event loop: `/livez`, `/metrics` and such; the console."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from cli.serve.http_protocol import HttpSettings, make_protocol
from gateway.connection.listener import share
from gateway.tls.tls_front import Handshakes, make_front
from security.tls.server_contexts import TlsContexts

MetricsText = Callable[[str], Awaitable[tuple[str, Sequence[bytes]]]]
"""Takes the Accept header; returns content type and the text in parts."""


class _Uvicorn(uvicorn.Server):
    """uvicorn inside a server that handles its own signals.

    uvicorn's signal handlers would end the loop before the log is safe, and its main loop would
    wake an idle server ten times a second.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self._stopping.wait()

    def stop(self) -> None:
        """Make ``serve`` return without waiting for clients."""
        self.should_exit = self.force_exit = True
        self._stopping.set()


class HttpServer:
    """The HTTP server. ``is_ready`` is called for every `/readyz`."""

    def __init__(
        self,
        is_ready: Callable[[], bool],
        metrics: MetricsText,
        versions: Mapping[str, str],
        settings: HttpSettings | None = None,
        tls: TlsContexts | None = None,
        *,
        console: ASGIApp | None = None,
        more: Sequence[BaseRoute] = (),
    ) -> None:
        """``console`` serves all paths that are served neither here nor by ``more``."""
        self._settings = settings or HttpSettings()
        self._is_ready = is_ready
        self._metrics = metrics
        self._versions = dict(versions)
        self._console = console
        self._more = more
        self._handshakes: Handshakes | None = None
        if tls is not None:
            limit_s = self._settings.request_timeout_ms / 1_000
            self._handshakes = Handshakes(tls, self._settings.connections_max, limit_s)
        self._server: _Uvicorn | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; return the bound port (port 0: any free one). Raises ``OSError``."""
        listening = _listen(host, port, self._settings.backlog)
        bound: int = listening.getsockname()[1]
        config = uvicorn.Config(
            self.make_app(),
            http=self._make_protocol(),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            # Whoever connects from this machine could otherwise say that it is another one.
            proxy_headers=False,
            backlog=self._settings.backlog,
        )
        self._server = _Uvicorn(config)
        sockets = [listening, *share(listening, self._settings.accepted)]
        self._task = asyncio.create_task(self._server.serve(sockets), name="muster-http")
        await self._server.ready.wait()
        return bound

    async def stop(self) -> None:
        """Close all connections and the listener."""
        if self._server is None or self._task is None:
            return
        self._server.stop()
        if self._handshakes is not None:
            self._handshakes.abort()
        await self._task
        # Streams of the console would go on.
        tasks = tuple(self._server.server_state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _make_protocol(self) -> Any:
        plain = make_protocol(self._settings)
        return plain if self._handshakes is None else make_front(plain, self._handshakes)

    def make_app(self) -> Starlette:
        """The ASGI application, without a server."""
        routes: list[BaseRoute] = [
            Route("/livez", self._livez),
            Route("/readyz", self._readyz),
            Route("/metrics", self._serve_metrics),
            Route("/version", self._version),
            *self._more,
        ]
        if self._console is not None:
            # Else the console would be asked for what is here in another method.
            others = [
                Route(route.path, _MethodNotAllowed())
                for route in routes
                if isinstance(route, Route)
            ]
            routes += [*others, Mount("/", self._console)]
        return Starlette(routes=routes)

    async def _livez(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _readyz(self, request: Request) -> Response:
        if self._is_ready():
            return PlainTextResponse("ok\n")
        return PlainTextResponse("not ready\n", status_code=503)

    async def _serve_metrics(self, request: Request) -> Response:
        content_type, parts = await self._metrics(request.headers.get("accept", ""))
        return _InParts(content_type, parts)

    async def _version(self, request: Request) -> Response:
        return JSONResponse(self._versions)


class _InParts(Response):
    """Sends a long text part by part, as the client reads: all at once, it would be copied."""

    def __init__(self, content_type: str, parts: Sequence[bytes]) -> None:
        size = sum(map(len, parts))
        super().__init__(headers={"content-type": content_type, "content-length": str(size)})
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            # The connection takes what fits in its buffers without a wait.
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})


class _MethodNotAllowed:
    """Refuses a request of a path that is served for GET alone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = PlainTextResponse("method not allowed\n", 405, headers={"allow": "GET, HEAD"})
        await refusal(scope, receive, send)


def _listen(host: str, port: int, backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(backlog)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening
