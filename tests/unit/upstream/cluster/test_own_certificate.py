"""Connections in the names of clients do not show Muster's own certificate."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from security.client.client_security import ClientSecurity
from security.endpoints import SecurityProtocol
from security.tls.tls_settings import TlsSettings
from tests.support.certificates import Authority
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.cluster.connections.opening import Opener


@pytest.mark.parametrize(
    ("protocol", "for_others", "is_shown"),
    [
        (SecurityProtocol.SSL, False, True),
        (SecurityProtocol.SSL, True, False),
        # The login says who a client is; brokers may want a certificate all the same.
        (SecurityProtocol.SASL_SSL, True, True),
    ],
)
async def test_who_a_connection_shows_to_be(
    tmp_path: Path, protocol: SecurityProtocol, for_others: bool, is_shown: bool
) -> None:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.file))
    context.load_cert_chain(authority.issue("broker").both)
    context.verify_mode = ssl.CERT_OPTIONAL
    shown: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown.set_result(bool(writer.get_extra_info("peercert")))
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    own = TlsSettings(
        keystore_location=str(authority.issue("muster").both),
        truststore_location=str(authority.file),
    )
    security = ClientSecurity(protocol=protocol, mechanism="PLAIN", tls=own)
    opener = Opener(ClusterSettings((("127.0.0.1", 1),), security))
    port = server.sockets[0].getsockname()[1]
    _, writer = await opener.open_streams("127.0.0.1", port, for_others=for_others)
    assert await asyncio.wait_for(shown, 30) is is_shown
    writer.transport.abort()
    server.close()
    await server.wait_closed()
