"""A valid client in a process of its own, which says how long it had to wait.

    python -m tests.attack.bystander KAFKA GRPC HTTP ROUNDS [--security JSON] [--doors JSON]

It is a member of a group, commits and fetches over Kafka's wire, and commits over gRPC; it comes
anew, over a new connection, every ROUNDS times. To each line on standard input it answers with
JSON: what has been since the last one. What it waits for while it is asked counts too. With
security (JSON of ``Security``) one connection over Kafka's wire stays, and a third loop comes anew
each time, which logs in and commits. So it is over gRPC with that of the doors, and a loop asks
/readyz over a new connection each time.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from muster.v1 import group_pb2, group_pb2_grpc, types_pb2
from tests.attack.secure_client import (
    connect,
    connect_grpc,
    is_ready,
    make_context,
    make_metadata,
)
from tests.interop.security import Security
from tests.support.wire.blocking import HEARTBEAT, Client

PAUSE_S = 0.02
ALWAYS = 1 << 62
"""Rounds after which nobody comes anew."""
_MEMBER = "bystander-member"
_METADATA = "m" * 4_000
"""Commits are to fill files of the store."""


class Waits:
    """How long one loop of requests waits. Thread-safe: each field is written at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = None
        self._longest_s = 0.0
        self._answers = 0
        self._errors: list[str] = []

    def measure(self, work: Callable[[], object]) -> None:
        with self._lock:
            self._since = time.monotonic()
        error = ""
        try:
            work()
        except Exception as caught:  # noqa: BLE001 - whatever it is, it is told
            error = repr(caught)[:300]
        with self._lock:
            assert self._since is not None
            self._longest_s = max(self._longest_s, time.monotonic() - self._since)
            self._since = None
            self._answers += 1
            if error:
                self._errors.append(error)

    def take(self) -> dict[str, Any]:
        """What has been since the last time."""
        with self._lock:
            now = time.monotonic()
            longest_s = self._longest_s
            if self._since is not None:
                longest_s = max(longest_s, now - self._since)
            told = {"longest_s": longest_s, "answers": self._answers, "errors": self._errors[:3]}
            self._longest_s, self._answers, self._errors = 0.0, 0, []
            return told


class OverKafka:
    """A member's heartbeats, its commits and its fetches."""

    def __init__(
        self, address: tuple[str, int], rounds: int, security: Security | None = None
    ) -> None:
        self._address = address
        self._rounds = rounds
        self._security = security
        self._client: Client | None = None
        self._epoch = 0
        self._offset = 0

    def connect(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = connect(self._address, self._security)

    def beat(self) -> None:
        assert self._client is not None
        joins = self._epoch == 0
        answer = self._client.ask(
            HEARTBEAT,
            1,
            group_id="bystander",
            member_id=_MEMBER,
            member_epoch=self._epoch,
            rebalance_timeout=60_000 if joins else -1,
            subscribed_topic_names=("orders",) if joins else None,
            topic_partitions=() if joins else None,
        )
        if answer.error_code:
            raise RuntimeError(f"heartbeat: {answer.error_code} {answer.error_message}")
        self._epoch = answer.member_epoch

    def commit(self) -> None:
        assert self._client is not None
        self._offset += 1
        code = self._client.commit("bystander-offsets", "orders", 0, self._offset, _METADATA)
        if code:
            raise RuntimeError(f"commit: {code}")

    def fetch(self) -> None:
        assert self._client is not None
        found = self._client.offsets("bystander-offsets")
        if found[("orders", 0)] != self._offset:
            raise RuntimeError(f"{found} is committed, and {self._offset} was acknowledged")

    def run(self, waits: Waits) -> None:
        while True:
            waits.measure(self.connect)
            for _ in range(self._rounds):
                for work in (self.beat, self.commit, self.fetch):
                    waits.measure(work)
                time.sleep(PAUSE_S)


class Newcomer:
    """A connection for each commit."""

    def __init__(self, address: tuple[str, int], security: Security) -> None:
        self._address = address
        self._security = security
        self._offset = 0

    def come(self) -> None:
        self._offset += 1
        with connect(self._address, self._security) as client:
            code = client.commit("bystander-newcomer", "orders", 0, self._offset)
        if code:
            raise RuntimeError(f"commit: {code}")

    def run(self, waits: Waits) -> None:
        while True:
            waits.measure(self.come)
            time.sleep(PAUSE_S)


class OverGrpc:
    """Commits, each with the others' load on the way."""

    def __init__(self, target: str, rounds: int, security: Security | None = None) -> None:
        self._target = target
        self._rounds = rounds
        self._security = security
        self._metadata = make_metadata(security)
        self._offset = 0

    def commit(self, stub: Any) -> None:
        self._offset += 1
        request = group_pb2.CommitOffsetsRequest(
            group_id="bystander-grpc",
            topics=[
                types_pb2.TopicOffsets(
                    topic_name="orders",
                    partitions=[types_pb2.PartitionOffset(partition=0, offset=self._offset)],
                )
            ],
        )
        answer = stub.CommitOffsets(request, timeout=60, metadata=self._metadata)
        if answer.error.error_code or answer.failures:
            raise RuntimeError(f"commit: {answer}")

    def run(self, waits: Waits) -> None:
        while True:
            with connect_grpc(self._target, self._security) as channel:
                stub = group_pb2_grpc.GroupServiceStub(channel)
                for _ in range(self._rounds):
                    waits.measure(partial(self.commit, stub))
                    time.sleep(PAUSE_S)


class OverHttp:
    """/readyz over a new connection each time."""

    def __init__(self, address: tuple[str, int], security: Security) -> None:
        self._address = address
        self._context = make_context(security)

    def ask(self) -> None:
        if not is_ready(self._address, self._context):
            raise RuntimeError("/readyz is not answered")

    def run(self, waits: Waits) -> None:
        while True:
            waits.measure(self.ask)
            time.sleep(PAUSE_S)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("kafka", "grpc", "http"):
        parser.add_argument(name)
    parser.add_argument("rounds", type=int)
    for name in ("--security", "--doors"):
        parser.add_argument(name, type=Security.parse)
    options = parser.parse_args()
    rounds, security, doors = options.rounds, options.security, options.doors
    address = _parse(options.kafka)
    runs: dict[str, Callable[[Waits], None]] = {}
    if security is not None:
        runs["kafka"] = OverKafka(address, ALWAYS, security).run
        runs["newcomer"] = Newcomer(address, security).run
    else:
        runs["kafka"] = OverKafka(address, rounds).run
    if doors is not None:
        runs["grpc"] = OverGrpc(options.grpc, ALWAYS, doors).run
        runs["grpc newcomer"] = OverGrpc(options.grpc, 1, doors).run
        runs["http"] = OverHttp(_parse(options.http), doors).run
    else:
        runs["grpc"] = OverGrpc(options.grpc, rounds).run
    waits = {name: Waits() for name in runs}
    for name, run in runs.items():
        threading.Thread(target=run, args=(waits[name],), daemon=True).start()
    for _ in sys.stdin:
        print(json.dumps({name: waits[name].take() for name in waits}), flush=True)


def _parse(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    main()
