"""A server that stops while its disk holds an answer up: it waits, says so, and ends when told."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.durability.servers import GROUP, TOPIC, FaultyServer, build_shim
from tests.support.wire.blocking import NamedClient

COMMIT, COMMIT_VERSION = "offset_commit", 8
SETTINGS: dict[str, object] = {"shutdown.timeout.ms": 20_000}
ANOTHER_WAIT_S = 10
"""Enough to end, and half of what is waited for an answer."""
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultyServer]:
    with FaultyServer(tmp_path, build_shim(tmp_path), SETTINGS) as running:
        yield running


@contextmanager
def owed_answer(server: FaultyServer) -> Iterator[NamedClient]:
    """A client whose commit is not durable while the disk holds it."""
    address = server.address("kafka")
    with NamedClient(address) as client, NamedClient(address) as other:
        server.fail("hold sync store/rocksdb/0")
        row = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
        topics = [{"name": TOPIC, "partitions": [row]}]
        client.send(COMMIT, COMMIT_VERSION, group_id=GROUP, member_id="", topics=topics)
        # What was sent before this is read before it is answered.
        other.ask("find_coordinator", 3, key=GROUP, key_type=0)
        yield client


def begin_stop(server: FaultyServer, channel: grpc.Channel) -> None:
    """SIGTERM; when this returns its health says that it stops."""
    assert server.process is not None
    watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
    assert next(watch).status == SERVING
    server.process.send_signal(signal.SIGTERM)
    assert next(watch).status == NOT_SERVING


def test_a_second_signal_ends_it_at_once(server: FaultyServer) -> None:
    assert server.process is not None
    with owed_answer(server), grpc.insecure_channel(server.grpc) as channel:
        begin_stop(server, channel)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 128 + signal.SIGTERM
        assert time.monotonic() - began < ANOTHER_WAIT_S


def test_while_it_drains_it_says_that_it_is_not_ready_and_then_answers(
    server: FaultyServer,
) -> None:
    assert server.process is not None
    with owed_answer(server) as client, grpc.insecure_channel(server.grpc) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest()).status == SERVING
        begin_stop(server, channel)
        assert read_status(server, "/readyz") == 503
        assert read_status(server, "/livez") == 200
        assert server.process.poll() is None
        server.fail()
        [topic] = client.receive(COMMIT, COMMIT_VERSION)["topics"]
        assert [row["error_code"] for row in topic["partitions"]] == [0]
        assert server.process.wait(30) == 0
    server.start()
    assert server.terminate() == 0


def read_status(server: FaultyServer, path: str) -> int:
    return httpx.get(f"http://{server.http}{path}", trust_env=False).status_code
