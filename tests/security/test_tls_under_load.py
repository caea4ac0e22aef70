"""Keys replaced under load, floods of half-open handshakes, and large answers on both loops."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.certificates import Authority, Issued
from tests.support.waiting import wait_until

TOPIC = "orders"


def make_server(folder: Path, issued: Issued, **settings: object) -> MusterServer:
    return MusterServer(
        folder / "data",
        topics={TOPIC: 4},
        settings={
            "listen.kafka": "SSL://127.0.0.1:0",
            "ssl.keystore.location": issued.both,
            **{name.replace("_", "."): value for name, value in settings.items()},
        },
    )


def client(server: MusterServer, authority: Authority) -> dict[str, object]:
    return {
        "bootstrap.servers": server.kafka,
        "security.protocol": "ssl",
        "ssl.ca.location": str(authority.file),
    }


def read_name(server: MusterServer, authority: Authority) -> str:
    """The common name in the certificate of a new connection."""
    context = ssl.create_default_context(cafile=str(authority.file))
    with (
        socket.create_connection(server.address("kafka"), timeout=30) as line,
        context.wrap_socket(line, server_hostname="localhost") as tls,
    ):
        found = tls.getpeercert()
    assert found is not None
    return dict(pair[0] for pair in found["subject"])["commonName"]  # type: ignore[misc]


class Member:
    """A member that polls on a thread of its own, and notes what it loses."""

    def __init__(self, config: dict[str, object]) -> None:
        self.lost: list[str] = []
        self.assigned = 0
        self._consumer = Consumer(
            {**config, "group.id": "g", "group.protocol": "consumer", "enable.auto.commit": False}
        )
        self._consumer.subscribe(
            [TOPIC], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _on_assign(self, consumer: object, partitions: list[object]) -> None:
        self.assigned += len(partitions)

    def _on_revoke(self, consumer: object, partitions: list[object]) -> None:
        if not self._is_over.is_set():
            self.lost.append(str(partitions))

    def _run(self) -> None:
        while not self._is_over.is_set():
            self._consumer.poll(0.1)

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(60)
        self._consumer.close()


def read_epoch(server: MusterServer) -> str:
    text = httpx.get(f"http://{server.http}/metrics").text
    return "\n".join(line for line in text.splitlines() if line.startswith("muster_rebalances_"))


def test_keys_are_replaced_under_load(tmp_path: Path) -> None:
    """When the file changes and on SIGHUP; a broken file is refused; no member notices."""
    authority = Authority(tmp_path)
    first = authority.issue("first")
    with make_server(tmp_path, first) as server:
        members = [Member(client(server, authority))]
        try:
            wait_until(lambda: members[0].assigned == 4, within_s=60)
            before = read_epoch(server)
            assert read_name(server, authority) == "first"
            authority.issue("second", replaces=first.both)
            wait_until(lambda: read_name(server, authority) == "second", within_s=30)

            first.both.write_text("-----BEGIN nothing")
            wait_until(lambda: "certificate_refused" in server.output(), within_s=30)
            assert read_name(server, authority) == "second"
            os.kill(server.pid, signal.SIGHUP)
            wait_until(lambda: server.output().count("certificate_refused") == 2, within_s=30)

            authority.issue("expired", replaces=first.both, days_left=-1)
            wait_until(lambda: "has expired" in server.output(), within_s=30)
            assert read_name(server, authority) == "second"

            authority.issue("third", replaces=first.both)
            os.kill(server.pid, signal.SIGHUP)
            wait_until(lambda: read_name(server, authority) == "third", within_s=30)
            assert server.output().count("certificate_replaced") >= 2
            assert (members[0].lost, read_epoch(server)) == ([], before)
            # The connections that were open before are those that are still used.
            AdminClient(client(server, authority)).list_topics(timeout=30)
        finally:
            for member in members:
                member.stop()


def test_half_open_handshakes_lock_nobody_out(tmp_path: Path) -> None:
    """More than may be unfinished at a time: some silent, some in the middle, some with half a
    hello; a member and a new client are served meanwhile."""
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    context = ssl.create_default_context(cafile=str(authority.file))
    hello = ssl.MemoryBIO()
    begun = context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        begun.do_handshake()
    first = hello.read()
    lines: list[socket.socket] = []
    with make_server(tmp_path, issued, gateway_tls_handshakes_max=50) as server:
        member = Member(client(server, authority))
        try:
            wait_until(lambda: member.assigned == 4, within_s=60)
            for number in range(200):
                line = socket.create_connection(server.address("kafka"), timeout=30)
                line.sendall((b"", first, first[:20])[number % 3])
                lines.append(line)
            took_s = wait_until(lambda: read_name(server, authority) == "server", within_s=30)
            assert took_s < 10
            AdminClient(client(server, authority)).list_topics(timeout=30)
            text = httpx.get(f"http://{server.http}/metrics").text
            assert 'muster_kafka_connections_refused_total{reason="tls-handshakes"}' in text
            assert member.lost == []
        finally:
            for line in lines:
                line.close()
            member.stop()


def test_a_handshake_has_a_time_limit(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    settings = {"gateway_tls_handshake_timeout_ms": 500}
    with (
        make_server(tmp_path, authority.issue("server"), **settings) as server,
        socket.create_connection(server.address("kafka"), timeout=30) as line,
    ):
        assert line.recv(1) == b""
        wait_until(lambda: "no handshake within 0.5 s" in server.output(), within_s=30)


@pytest.fixture(params=["uvloop", "asyncio"])
def loop_server(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[MusterServer, Authority]]:
    """A server on each kind of event loop."""
    authority = Authority(tmp_path)
    server = make_server(tmp_path, authority.issue("server"))
    if request.param == "asyncio":
        (tmp_path / "without").mkdir()
        (tmp_path / "without" / "uvloop.py").write_text("raise ImportError\n")
        server.environment = {"PYTHONPATH": f"{tmp_path}/without:{CHECKOUT}:{CHECKOUT}/sdk"}
    with server:
        yield server, authority


def test_large_requests_and_answers_on_both_loops(
    loop_server: tuple[MusterServer, Authority],
) -> None:
    """8 MB in, 8 MB out, in one piece each; the reader is slower than the server."""
    server, authority = loop_server
    config = client(server, authority)
    producer = Producer({**config, "linger.ms": 5, "message.max.bytes": 1_000_000})
    records = [bytes([number]) * 500_000 for number in range(16)]
    for record in records:
        producer.produce(TOPIC, record, partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer(
        {
            **config,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "group.protocol": "consumer",
            "fetch.message.max.bytes": 10_000_000,
            "receive.message.max.bytes": 60_000_000,
        }
    )
    found: list[bytes] = []

    def poll() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message.value())
        return len(found) == len(records)

    try:
        consumer.subscribe([TOPIC])
        wait_until(poll, within_s=60)
        assert found == records
    finally:
        consumer.close()


def test_a_slow_reader_on_both_loops(loop_server: tuple[MusterServer, Authority]) -> None:
    """Answers that the client reads late arrive whole, and in order."""
    server, authority = loop_server
    context = ssl.create_default_context(cafile=str(authority.file))
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        plain.settimeout(60)
        plain.connect(server.address("kafka"))
        with context.wrap_socket(plain, server_hostname="localhost") as line:
            count = 3_000
            asks = b"".join(struct.pack(">ihhih", 10, 18, 0, number, -1) for number in range(count))
            writer = threading.Thread(target=line.sendall, args=(asks,))
            writer.start()
            got = bytearray()
            for number in range(count):
                while len(got) < 4 or len(got) < 4 + struct.unpack_from(">i", got)[0]:
                    piece = line.recv(65_536)
                    assert piece
                    got += piece
                size, correlation_id = struct.unpack_from(">ii", got)
                assert correlation_id == number
                del got[: 4 + size]
            writer.join(60)
