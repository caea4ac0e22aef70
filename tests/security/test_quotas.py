"""Quotas of a real server, by Kafka's own tool and for real clients."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.kafka.tools import run_tool
from tests.server import MusterServer
from tests.support.cli.invoking import invoke_app
from tests.support.wire.blocking import Client
from tests.support.wire.frames import make_frame

CONFIGS = "kafka.admin.ConfigCommand"
VERSIONS = 18


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    settings = {
        "listen.kafka": "127.0.0.1:0,SMALL:PLAINTEXT://127.0.0.1:0",
        "listener.name.small.max.connections": 3,
        "max.connections.per.ip": 100,
        "group.consumer.session.timeout.ms": 6_000,
        "group.consumer.min.session.timeout.ms": 6_000,
        "group.consumer.heartbeat.interval.ms": 1_000,
    }
    with MusterServer(tmp_path / "data", topics={"orders": 4}, settings=settings) as running:
        yield running


def run_configs(server: MusterServer, *arguments: str) -> str:
    done = run_tool(CONFIGS, ["--bootstrap-server", server.kafka, *arguments])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafkas_tool_sets_shows_and_deletes_quotas(server: MusterServer) -> None:
    for kind, name, config in (
        ("clients", "app", "request_percentage=50,producer_byte_rate=1024"),
        ("ips", "10.0.0.1", "connection_creation_rate=7"),
        ("users", "alice", "request_percentage=25"),
    ):
        said = run_configs(
            server, "--alter", "--add-config", config, "--entity-type", kind, "--entity-name", name
        )
        assert "Completed updating config" in said
    listed = invoke_app("quota", "list", "-o", "csv", "--server", server.grpc)
    assert listed.out.splitlines()[1:] == [
        ",,10.0.0.1,connection_creation_rate,7",
        ",app,,producer_byte_rate,1024",
        ",app,,request_percentage,50",
        "alice,,,request_percentage,25",
    ]
    invoke_app("quota", "set", "commit_rate=5", "--client-id", "app", "--server", server.grpc)
    said = run_configs(server, "--describe", "--entity-type", "clients", "--entity-name", "app")
    assert "commit_rate=5.0" in said
    assert "request_percentage=50.0" in said
    assert "connection_creation_rate=7.0" in run_configs(
        server, "--describe", "--entity-type", "ips"
    )
    run_configs(
        server,
        "--alter",
        "--delete-config",
        "request_percentage,producer_byte_rate",
        "--entity-type",
        "clients",
        "--entity-name",
        "app",
    )
    left = invoke_app("quota", "list", "--client-id", "app", "-o", "csv", "--server", server.grpc)
    assert left.out.splitlines()[1:] == [",app,,commit_rate,5"]


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_a_client_that_is_slowed_keeps_its_membership(server: MusterServer, protocol: str) -> None:
    invoke_app("quota", "set", "request_rate=5", "--client-id", "slow", "--server", server.grpc)
    config = {
        "bootstrap.servers": server.kafka,
        "group.id": "g",
        "client.id": "slow",
        "group.protocol": protocol,
        "enable.auto.commit": False,
    }
    if protocol == "classic":
        config |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000}
    consumer = Consumer(config)
    lost: list[object] = []
    assigned: list[TopicPartition] = []
    consumer.subscribe(
        ["orders"],
        on_assign=lambda _, partitions: assigned.extend(partitions),
        on_lost=lambda _, partitions: lost.append(partitions),
    )
    try:
        end = time.monotonic() + 30
        while len(assigned) < 4 and time.monotonic() < end:
            consumer.poll(0.1)
        assert len(assigned) == 4
        commits, end = 0, time.monotonic() + 8
        while time.monotonic() < end:
            consumer.poll(0)
            try:
                offsets = [TopicPartition("orders", 0, commits + 1)]
                consumer.commit(offsets=offsets, asynchronous=False)
                commits += 1
            except KafkaException as error:
                pytest.fail(f"a commit failed: {error}")
        assert not lost
        assert len(assigned) == 4, "there was another rebalance"
        assert commits < 120, "it was slowed"
        assert read_throttled_s(server) > 0
    finally:
        consumer.close()


def read_throttled_s(server: MusterServer) -> float:
    with socket.create_connection(address_of(server.http), 5) as http:
        http.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        said = b""
        while part := http.recv(65_536):
            said += part
    found = re.search(rb'muster_throttled_seconds_total\{door="kafka"\} (\S+)', said)
    assert found is not None
    return float(found[1])


def address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max.connections.per.ip": 100}, b"too-many-of-one-address"),
        ({"max.connection.creation.rate": 5}, b"too-fast"),
    ],
)
def test_one_address_that_floods_keeps_nobody_else_out(
    tmp_path: Path, settings: dict[str, object], reason: bytes
) -> None:
    with (
        MusterServer(tmp_path / "data", settings=settings) as server,
        ExitStack() as held,
    ):
        kafka = address_of(server.kafka)
        ask = make_frame(VERSIONS, 0, correlation_id=1)
        for _ in range(300):
            flood = held.enter_context(socket.create_connection(kafka, 5))
            flood.sendall(ask)
        began = time.monotonic()
        other = held.enter_context(
            socket.create_connection(kafka, 5, source_address=("127.0.0.2", 0))
        )
        other.sendall(ask)
        (size,) = struct.unpack(">i", other.recv(4))
        assert size > 0
        assert time.monotonic() - began < 1.0
        assert reason in server.log.read_bytes()


def test_an_address_may_have_its_connections_again(server: MusterServer) -> None:
    kafka = address_of(server.kafka)
    with ExitStack() as held:
        clients = [held.enter_context(Client(kafka, 5)) for _ in range(100)]
        for client in clients:
            client.ask(VERSIONS, 0)
        refused = held.enter_context(socket.create_connection(kafka, 5))
        assert refused.recv(1) == b""
    end = time.monotonic() + 10
    while True:
        try:
            with Client(kafka, 5) as client:
                client.ask(VERSIONS, 0)
            return
        except ConnectionError:
            assert time.monotonic() < end


def test_a_listener_has_so_many_connections_and_another_its_own(server: MusterServer) -> None:
    small = server.address("SMALL")
    held = [Client(small) for _ in range(3)]
    for client in held:
        assert client.ask(VERSIONS, 0).error_code == 0
    with pytest.raises(OSError), Client(small) as fourth:
        fourth.ask(VERSIONS, 0)
    with Client(server.address("kafka")) as other:
        assert other.ask(VERSIONS, 0).error_code == 0
    for client in held:
        assert client.ask(VERSIONS, 0).error_code == 0
        client.close()
