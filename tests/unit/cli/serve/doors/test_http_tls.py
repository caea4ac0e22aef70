"""The HTTP listener over TLS: certificates that are replaced, and handshakes that lead nowhere."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from cli.serve.doors.console_door import make_certificate_finder
from cli.serve.http import HttpServer
from cli.serve.http_protocol import HttpSettings
from security.tls.server_contexts import TlsContexts, load_tls
from tests.support.certificates import Authority
from tests.support.service.server_tls import make_settings
from tests.support.waiting import until

_REQUEST = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def make_metrics(accept: str) -> tuple[str, Sequence[bytes]]:
    return "text/plain", (b"met", b"rics")


def load(authority: Authority, *, requires_client: bool = False) -> TlsContexts:
    keys = authority.issue("server").both
    return TlsContexts(load_tls(make_settings(keys, authority, requires_client=requires_client)))


@asynccontextmanager
async def serving(
    tls: TlsContexts, settings: HttpSettings | None = None, console: ASGIApp | None = None
) -> AsyncIterator[int]:
    server = HttpServer(lambda: True, make_metrics, {}, settings, tls, console=console)
    port = await server.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        async with asyncio.timeout(30):
            await server.stop()


async def ask(
    port: int, authority: Authority, certificate: Path | None = None, request: bytes = _REQUEST
) -> bytes:
    context = ssl.create_default_context(cafile=authority.file)
    if certificate is not None:
        context.load_cert_chain(certificate)
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(request)
        try:
            return await reader.read()
        finally:
            writer.close()


async def ask_in_vain(port: int, authority: Authority) -> bytes:
    """What comes back, if anything does: TLS 1.3 tells of a refusal after the handshake."""
    try:
        return await ask(port, authority)
    except (ssl.SSLError, ConnectionError):
        return b""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def test_it_is_served_over_tls(authority: Authority) -> None:
    async with serving(load(authority)) as port:
        answer = await ask(port, authority)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"ok\n")


async def test_certificates_are_replaced(authority: Authority, tmp_path: Path) -> None:
    contexts, newer = load(authority), Authority(tmp_path, "newer")
    async with serving(contexts) as port:
        await ask(port, authority)
        contexts.replace(load(newer).current)
        with pytest.raises(ssl.SSLError):
            await ask(port, authority)
        assert b"ok" in await ask(port, newer)


async def test_client_certificates_may_be_required(authority: Authority) -> None:
    async with serving(load(authority, requires_client=True)) as port:
        assert b"ok" in await ask(port, authority, authority.issue("prometheus").both)
        assert not await ask_in_vain(port, authority)


async def test_the_console_learns_who_the_client_s_certificate_is_about(
    authority: Authority,
) -> None:
    contexts = load(authority, requires_client=True)
    find = make_certificate_finder(contexts)

    async def tell(scope: Any, receive: Any, send: Any) -> None:
        (pem,) = scope["extensions"]["tls"]["client_cert_chain"]
        await PlainTextResponse(find(pem.encode()).principal)(scope, receive, send)

    async with serving(contexts, console=tell) as port:
        certificate = authority.issue("alice").both
        answer = await ask(port, authority, certificate, _REQUEST.replace(b"/livez", b"/groups"))
        assert b"\r\n\r\nUser:CN=alice," in answer


async def test_plain_bytes_end_the_connection(authority: Authority) -> None:
    async with serving(load(authority)) as port, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_REQUEST)
        with suppress(ConnectionError):
            assert b"200" not in await reader.read()
        writer.close()
        assert b"ok" in await ask(port, authority)


async def test_handshakes_that_lead_nowhere_keep_nobody_out(authority: Authority) -> None:
    """The oldest of them make room."""
    settings = HttpSettings(connections_max=20, request_timeout_ms=3_600_000)
    async with serving(load(authority), settings) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        for _ in range(3):
            assert b"ok" in await ask(port, authority)
        for _, writer in held:
            writer.close()


async def test_a_handshake_has_a_time_limit(authority: Authority) -> None:
    async with serving(load(authority), HttpSettings(request_timeout_ms=100)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        ended = asyncio.ensure_future(reader.read())
        await until(ended.done, "the server gives up")
        ended.exception()
        writer.close()


async def test_it_stops_amid_handshakes(authority: Authority) -> None:
    settings = HttpSettings(request_timeout_ms=3_600_000)
    async with serving(load(authority), settings) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


@pytest.mark.parametrize(
    "served",
    [
        test_it_is_served_over_tls,
        test_plain_bytes_end_the_connection,
        test_handshakes_that_lead_nowhere_keep_nobody_out,
        test_a_handshake_has_a_time_limit,
        test_it_stops_amid_handshakes,
    ],
)
def test_it_is_the_same_on_uvloop(
    served: Callable[[Authority], Coroutine[None, None, None]], authority: Authority
) -> None:
    """Bug: its transports are no ``asyncio.Transport``, and each connection was an error."""
    uvloop = pytest.importorskip("uvloop")
    uvloop.run(served(authority))
