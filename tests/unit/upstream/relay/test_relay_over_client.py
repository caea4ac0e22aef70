"""Relays over the cluster's client: with TLS on both sides or none, on each kind of event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from security.client.client_security import ClientSecurity
from security.endpoints import SecurityProtocol
from security.tls.tls_settings import TlsSettings
from tests.support.certificates import Authority
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


async def relay_a_cluster(authority: Authority | None) -> None:
    security, tls, trust = ClientSecurity(), None, None
    if authority is not None:
        tls = make_context(authority)
        trust = ssl.create_default_context(cafile=str(authority.file))
        trust.check_hostname = False
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
        settings = RelaySettings(own=OWN, ports=find_ports(2), bind_host="127.0.0.1", tls=tls)
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
    # Transports that were aborted close in the next turns of the loop.
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
