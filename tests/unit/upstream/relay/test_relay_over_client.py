"""Relays over the cluster's client: with TLS on both sides or none, on each kind of event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from security.client.client_security import ClientSecurity
from security.endpoints import SecurityProtocol
from security.tls.server_contexts import TlsContexts, load_tls
from security.tls.tls_settings import TlsSettings
from tests.support.certificates import Authority
from tests.support.service.server_tls import make_settings
from tests.support.upstream.fake_broker import FakeCluster
from tests.support.upstream.response_frames import response_frame
from tests.support.waiting import until
from tests.unit.upstream.relay.relay_rig import OWN, Client, FakePlaces, find_ports
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.relay.relay_settings import RelaySettings
from upstream.relay.relays import Relays
from upstream.statistics import UpstreamStatistics

BIG = 3_000_000


def new_uvloop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = pytest.importorskip("uvloop").new_event_loop()
    return loop


def make_context(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.issue("server").both)
    return context


def make_keys(authority: Authority) -> TlsContexts:
    keys = authority.issue("relay").both
    return TlsContexts(load_tls(make_settings(keys, authority, requires_client=False)))


def make_trust(authority: Authority) -> ssl.SSLContext:
    trust = ssl.create_default_context(cafile=str(authority.file))
    trust.check_hostname = False
    return trust


async def relay_a_cluster(authority: Authority | None) -> None:
    security, tls, keys, trust = ClientSecurity(), None, None, None
    if authority is not None:
        tls = make_context(authority)
        keys = make_keys(authority)
        trust = make_trust(authority)
        security = ClientSecurity(
            protocol=SecurityProtocol.SSL,
            tls=TlsSettings(truststore_location=str(authority.file)),
        )
    async with FakeCluster(2, tls=tls) as cluster:
        cluster[1].answers[1] = lambda asked: response_frame(
            1, asked.version, asked.correlation_id,
            responses=[{"topic_id": b"t" * 16, "partitions": [{"records": bytes(BIG)}]}],
        )  # fmt: skip
        client = ClusterClient(ClusterSettings(cluster.addresses, security=security))
        await client.start()
        statistics = UpstreamStatistics()
        settings = RelaySettings(own=OWN, ports=find_ports(2), bind_host="127.0.0.1", tls=keys)
        relays = Relays(client, FakePlaces(), settings, statistics)
        await relays.start()
        addresses = {node_id: relays.address_of(node_id) for node_id in (1, 2)}
        relayed = Client(
            *await asyncio.open_connection(*(addresses[1] or ()), ssl=trust, limit=2**22)
        )
        metadata = await relayed.ask(3, 9)
        named = {row.node_id: (row.host, row.port) for row in metadata.brokers}
        assert named == addresses | {OWN.node_id: (OWN.host, OWN.port)}
        response = await relayed.ask(1, 15)
        assert len(response.responses[0].partitions[0].records) == BIG
        assert statistics.relay_connections_now == {1: 1}
        assert statistics.relayed_bytes["to_client"] > BIG
        cluster[1].cut()
        assert await relayed.is_closed()
        relayed.writer.close()
        await until(lambda: statistics.relay_connections_now == {1: 0})
        await relays.stop()
        await client.stop()
        await until(lambda: not cluster[1].open and not cluster[2].open)
    await turn()


async def turn() -> None:
    """Transports that were aborted close in the next turns of the loop."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, new_uvloop])
@pytest.mark.parametrize("has_tls", [False, True])
def test_a_cluster_is_relayed(
    tmp_path: Path, has_tls: bool, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    authority = Authority(tmp_path) if has_tls else None
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(relay_a_cluster(authority))


def read_certificate(writer: asyncio.StreamWriter) -> bytes:
    """The server's certificate."""
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return found


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, new_uvloop])
def test_keys_are_replaced_and_handshakes_that_end_leave_nothing(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    authority = Authority(tmp_path)

    async def run() -> None:
        keys = make_keys(authority)
        async with FakeCluster(1) as cluster:
            client = ClusterClient(ClusterSettings(cluster.addresses))
            await client.start()
            statistics = UpstreamStatistics()
            settings = RelaySettings(
                own=OWN, ports=find_ports(1), bind_host="127.0.0.1", tls=keys, handshakes_max=1
            )
            relays = Relays(client, FakePlaces(), settings, statistics)
            await relays.start()
            address = relays.address_of(1) or ("", 0)
            # One that is plain, and two that say nothing, of which the older makes room.
            plain = Client(*await asyncio.open_connection(*address))
            plain.writer.write(b"\x00\x00\x00\x10\x00\x12\x00\x03" + bytes(12))
            assert await plain.is_closed()
            silent = [Client(*await asyncio.open_connection(*address)) for _ in range(2)]
            assert await silent[0].is_closed()
            assert relays.connections == {1: 0}
            shown = []
            for _ in range(2):
                trust = make_trust(authority)
                relayed = Client(*await asyncio.open_connection(*address, ssl=trust))
                assert (await relayed.ask(3, 9)).brokers
                shown.append(read_certificate(relayed.writer))
                relayed.writer.close()
                keys.replace(make_keys(authority).current)
            assert shown[0] != shown[1]
            await until(lambda: relays.connections == {1: 0})
            await relays.stop()
            assert await silent[1].is_closed()
            for each in (plain, *silent):
                each.writer.transport.abort()
            await client.stop()
        await turn()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
