"""A server that does not start says in one line what is wrong with the cluster, and what to do."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from security.client.client_security import ClientSecurity
from security.endpoints import SecurityProtocol
from security.tls.tls_settings import TlsSettings
from tests.support.certificates import Authority
from tests.support.upstream.fake_broker import (
    API_VERSIONS,
    AUTHENTICATE,
    HANDSHAKE,
    ILLEGAL_SASL_STATE,
    METADATA,
    Act,
    FakeBroker,
    FakeCluster,
)
from tests.support.upstream.fake_login import FakeLogin, make_security
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.cluster.start_checks import UpstreamFault


async def find_fault(addresses: tuple[tuple[str, int], ...], **settings: Any) -> str:
    client = ClusterClient(ClusterSettings(addresses, **{"connect_timeout_ms": 300, **settings}))
    with pytest.raises(UpstreamFault) as caught:
        await client.start()
    await client.stop()
    message = str(caught.value)
    assert "\n" not in message
    return message


def make_server_context(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.issue("broker").both)
    return context


def trusting(authority: Authority, **more: Any) -> ClientSecurity:
    return ClientSecurity(
        protocol=SecurityProtocol.SSL,
        tls=TlsSettings(truststore_location=str(authority.file)),
        **more,
    )


async def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = held.getsockname()
    said = await find_fault((address, ("127.0.0.1", 1)))
    assert "check upstream.bootstrap.servers" in said
    assert f"{address[1]}" in said


async def test_a_name_that_nobody_knows() -> None:
    assert "upstream.bootstrap.servers" in await find_fault((("no-such-host.invalid", 9092),))
    assert "upstream.bootstrap.servers" in await find_fault((("x" * 300, 9092),))


async def test_no_address() -> None:
    assert "set HOST:PORT" in await find_fault(())


async def test_one_address_with_an_answer_is_enough() -> None:
    async with FakeCluster() as cluster:
        client = ClusterClient(ClusterSettings((("127.0.0.1", 1), *cluster.addresses)))
        await client.start()
        assert sorted(client.brokers) == [1]
        await client.stop()


async def test_it_accepts_and_never_answers() -> None:
    async with FakeCluster() as cluster:
        cluster[1].answers[API_VERSIONS] = lambda asked: Act.SILENCE
        said = await find_fault(cluster.addresses)
        assert "accepts, and does not answer" in said


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it is an HTTP server"),
        (b"220 mail.example.org ESMTP\r\n", "it is not a Kafka broker"),
        (b"\x00\x00\x00\x08garbage!", "it is not a Kafka broker"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "set upstream.security.protocol to SSL"),
    ],
    ids=["HTTP", "SMTP", "frame", "TLS alert"],
)
async def test_it_is_not_kafka(answer: bytes, expected: str) -> None:
    async with FakeCluster() as cluster:
        cluster[1].answers[API_VERSIONS] = lambda asked: answer
        assert expected in await find_fault(cluster.addresses)


async def test_it_closes_at_the_first_request() -> None:
    async with FakeCluster() as cluster:
        cluster[1].answers[API_VERSIONS] = lambda asked: Act.CLOSE
        assert "check that it is a Kafka broker" in await find_fault(cluster.addresses)


async def test_tls_is_wanted(tmp_path: Path) -> None:
    async with FakeCluster(tls=make_server_context(Authority(tmp_path))) as cluster:
        said = await find_fault(cluster.addresses)
        assert "speaks TLS: set upstream.security.protocol to SSL" in said


async def test_tls_is_not_spoken(tmp_path: Path) -> None:
    async with FakeCluster() as cluster:
        said = await find_fault(cluster.addresses, security=trusting(Authority(tmp_path)))
        assert "does not speak TLS there" in said


async def test_the_certificate_is_of_another_authority(tmp_path: Path) -> None:
    async with FakeCluster(tls=make_server_context(Authority(tmp_path))) as cluster:
        other = Authority(tmp_path, "other")
        said = await find_fault(cluster.addresses, security=trusting(other))
        assert "upstream.ssl.truststore.location" in said


async def test_tls_fits(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with FakeCluster(tls=make_server_context(authority)) as cluster:
        client = ClusterClient(ClusterSettings(cluster.addresses, trusting(authority)))
        await client.start()
        assert client.is_reachable
        await client.stop()


async def test_a_login_is_wanted() -> None:
    async with FakeCluster() as cluster:
        FakeLogin(cluster)
        assert "it wants a login" in await find_fault(cluster.addresses)


async def test_no_login_is_spoken() -> None:
    async with FakeCluster() as cluster:
        cluster[1].answers[HANDSHAKE] = lambda asked: {"error_code": ILLEGAL_SASL_STATE}
        said = await find_fault(cluster.addresses, security=make_security("PLAIN"))
        assert "does not speak SASL: check upstream.security.protocol" in said


async def test_the_mechanism_is_not_served() -> None:
    async with FakeCluster() as cluster:
        login = FakeLogin(cluster)
        login.mechanisms.pop("PLAIN")
        said = await find_fault(cluster.addresses, security=make_security("PLAIN"))
        assert "does not serve PLAIN, its mechanisms are: SCRAM-SHA-256, SCRAM-SHA-512" in said


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_the_password_is_wrong(mechanism: str) -> None:
    async with FakeCluster() as cluster:
        FakeLogin(cluster)
        security = make_security(mechanism, "not this")
        said = await find_fault(cluster.addresses, security=security)
        assert "check upstream.sasl.mechanism and Muster's own credentials" in said
        assert "not this" not in said


async def test_a_login_that_is_cut_off_or_never_ends() -> None:
    async with FakeCluster() as cluster:
        FakeLogin(cluster)
        cluster[1].answers[AUTHENTICATE] = lambda asked: Act.CLOSE
        security = make_security("PLAIN")
        assert "credentials" in await find_fault(cluster.addresses, security=security)
        cluster[1].answers[AUTHENTICATE] = lambda asked: Act.SILENCE
        said = await find_fault(cluster.addresses, security=security)
        assert "during the login" in said


async def test_it_is_a_muster() -> None:
    async with FakeCluster() as cluster:
        # AddPartitionsToTxn, AddOffsetsToTxn and EndTxn are the brokers' alone.
        for key in (24, 25, 26):
            del cluster[1].versions[key]
        cluster[1].versions[27] = range(1, 3)
        assert "is a Muster, this one or another" in await find_fault(cluster.addresses)


async def test_it_is_a_relay_of_a_muster() -> None:
    async with FakeCluster() as cluster:
        node = FakeBroker((1 << 30) + 1, cluster, port=9)
        cluster.brokers[node.node_id] = node
        assert "is a Muster, this one or another" in await find_fault(cluster.addresses[:1])


async def test_the_brokers_that_it_names_cannot_be_reached() -> None:
    async with FakeCluster() as cluster:
        address = cluster.addresses
        row = {"node_id": 5, "host": "127.0.0.1", "port": 1}
        cluster[1].answers[METADATA] = lambda asked: {"brokers": (row,), "cluster_id": "c"}
        assert "advertised.listeners" in await find_fault(address)


async def test_it_names_no_broker() -> None:
    async with FakeCluster() as cluster:
        cluster[1].answers[METADATA] = lambda asked: {"cluster_id": "c"}
        assert "wait until it is ready" in await find_fault(cluster.addresses)


async def test_it_is_too_old() -> None:
    async with FakeCluster() as cluster:
        cluster[1].versions[METADATA] = range(2)
        assert "older than Kafka 0.10.1" in await find_fault(cluster.addresses)


async def test_the_most_telling_trouble_is_told() -> None:
    async with FakeCluster() as cluster:
        FakeLogin(cluster)
        said = await find_fault((("127.0.0.1", 1), *cluster.addresses))
        assert "it wants a login" in said
