"""Muster logs in on each connection of its own, and again before the broker ends the session."""

from __future__ import annotations

import pytest

from gateway.codec.client_frames import ClientRequest
from tests.support.upstream.fake_broker import FakeCluster
from tests.support.upstream.fake_login import FakeLogin, make_security
from tests.support.waiting import until
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.cluster_settings import ClusterSettings

DESCRIBE = 15
NOBODY = ClientRequest(DESCRIBE, {"groups": ()})


async def start(cluster: FakeCluster, mechanism: str = "PLAIN") -> ClusterClient:
    client = ClusterClient(ClusterSettings(cluster.addresses, make_security(mechanism)))
    await client.start()
    return client


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_logs_in_on_every_connection(mechanism: str) -> None:
    async with FakeCluster(2) as cluster:
        login = FakeLogin(cluster)
        cluster.answer(DESCRIBE, lambda asked: {"groups": ()})
        client = await start(cluster, mechanism)
        link = await client.open_link(2)
        assert (await link.ask(NOBODY)).groups == ()
        assert (await client.ask(NOBODY, node_id=2)).groups == ()
        connections = sum(broker.connections for broker in cluster.brokers.values())
        assert len(login.logins) == len(set(login.logins)) == connections
        link.close()
        await client.stop()


async def test_a_session_that_ends_is_followed_by_a_new_connection() -> None:
    async with FakeCluster() as cluster:
        login = FakeLogin(cluster, lifetime_ms=20)
        cluster.answer(DESCRIBE, lambda asked: {"groups": ()})
        client = await start(cluster)
        connection = await client._peers.find(1).connect()
        await until(lambda: connection.needs_login)
        assert (await client.ask(NOBODY, node_id=1)).groups == ()
        assert not connection.is_usable
        assert cluster[1].asked[-1].connection == login.logins[-1][1] == cluster[1].connections
        await client.stop()


async def test_a_link_logs_in_again_where_it_is() -> None:
    async with FakeCluster() as cluster:
        login = FakeLogin(cluster, lifetime_ms=20)
        cluster.answer(DESCRIBE, lambda asked: {"groups": ()})
        client = await start(cluster)
        link = await client.open_link(1)
        number = cluster[1].connections
        await until(lambda: link._connection.needs_login)
        assert (await link.ask(NOBODY)).groups == ()
        assert login.logins.count((1, number)) == 2
        link.close()
        await client.stop()
