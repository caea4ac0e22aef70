"""Connections that take what a server has of them and say nothing, or half of something."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

from tests.attack.flood import Flood
from tests.attack.stand import Attack, Target
from tests.support.wire.blocking import Client
from tests.support.wire.frames import make_frame

FILE_LIMIT = 1_024
_HALF = struct.pack(">ihhi", 100 << 20, 8, 9, 1)
"""The beginning of a request of 100 MB."""
_HEAD = b"GET /readyz HTTP/1.1\r\nHost: a\r\nX-Slow: "


def send_half(target: Target, strength: int) -> None:
    """Requests of 100 MB that never come to their end."""
    with Flood(target.kafka) as flood:
        flood.connect(400 * strength, make_frame(18, 0) + _HALF + b"z" * 900_000)
        flood.run(4 * strength)
        target.notes.append(f"{flood.closed} of {400 * strength} closed")


def wait_and_die(target: Target, strength: int) -> None:
    """Requests that wait for long, by clients that can send no more, and read nothing."""
    fetch = make_frame(
        1,
        12,
        max_wait=30_000,
        min_bytes=1 << 20,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[
            {
                "topic": "orders",
                "partitions": [
                    {"partition": number, "partition_max_bytes": 1 << 20, "fetch_offset": 0}
                    for number in range(12)
                ],
            }
        ],
    )
    lines = []
    for _ in range(500 * strength):
        line = socket.create_connection(target.kafka, 10)
        line.sendall(fetch)
        line.shutdown(socket.SHUT_WR)
        lines.append(line)
    time.sleep(2)
    for line in lines:
        line.close()


def take_descriptors(target: Target, strength: int) -> None:
    """Twice as many connections as the process may have files, while others commit."""
    client = Client(target.kafka)
    with Flood(target.kafka) as flood, Flood(target.grpc) as grpc, Flood(target.http) as http:
        # One at a time from each address, so that no queue of the kernel makes them wait.
        for _ in range(20):
            flood.connect(70)
            grpc.connect(20)
            http.connect(10)
            _commit(client, target)
        end = time.monotonic() + 3 * strength
        while time.monotonic() < end:
            _commit(client, target)
        flood.run(0.2)
        target.notes.append(f"{flood.open} of 1400 idle connections are left")
    client.close()


def _commit(client: Client, target: Target) -> None:
    """Of 4 KB, so that the store opens files."""
    for number in range(50):
        if code := client.commit("attacked", "orders", number % 12, number, "m" * 4_000):
            raise AssertionError(f"a commit is answered {code}")


def send_heads_slowly(target: Target, strength: int) -> None:
    """Heads of HTTP that come a byte at a time."""
    lines: list[socket.socket] = []
    for _ in range(400):
        with contextlib.suppress(OSError):
            line = socket.create_connection(target.http, 5)
            line.sendall(_HEAD)
            lines.append(line)
    end = time.monotonic() + 2.5 * strength
    while time.monotonic() < end:
        for line in lines:
            with contextlib.suppress(OSError):
                line.send(b"z")
        time.sleep(0.1)
    for line in lines:
        line.close()
    _check_http(target)


def ask_for_metrics(target: Target, strength: int) -> None:
    """/metrics, pipelined, from 30 connections that read nothing."""
    with Flood(target.http) as flood:
        flood.connect(30, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 2_000)
        flood.run(3 * strength, reads=False)
    _check_http(target)


def _check_http(target: Target) -> None:
    with socket.create_connection(target.http, 10) as line:
        line.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        if b" 200 " not in line.recv(1_000):
            raise AssertionError("/readyz is not answered")


ATTACKS = (
    Attack("half-sent requests", send_half),
    Attack("half-open connections", wait_and_die),
    Attack(
        "2,000 connections, ulimit -n 1024",
        take_descriptors,
        file_limit=FILE_LIMIT,
        # Newcomers are refused until the silent have been so for long enough to go.
        rounds=1_000_000,
    ),
    Attack("slow heads of HTTP", send_heads_slowly),
    Attack("/metrics that nobody reads", ask_for_metrics, is_quick=False),
)
