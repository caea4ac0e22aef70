"""Members of groups with any client library, each a process of its own, in either protocol.

    member = start("kafka-python", server, "one", strategies=["range"])

All are programs with the same options, events and commands, so that one test knows them all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.confluent_client import Served
from tests.interop.go_programs import build_go
from tests.interop.security import (
    NO_SECURITY,
    Security,
    compute_java_settings,
    compute_jvm_options,
)
from tests.kafka.java import Event, JavaProgram, java_command
from tests.support.waiting import wait_until

WITHIN_S = 90.0
HERE = Path(__file__).parent
ALL = os.environ.get("INTEROP") == "all"
"""Whether all clients and strategies are to run, as `make interop` asks."""
SESSION_MS = 45_000
"""A restart of the server on a busy machine takes some seconds."""
SHORT_SESSION_MS = 10_000
"""Of members that crash, so that nobody waits for long."""

STRATEGIES: Mapping[str, Sequence[str]] = {
    "java": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "confluent-kafka": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
    "franz-go": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "sarama": ("range", "roundrobin", "sticky"),
}
"""What each client has to share partitions by in the classic protocol."""
ASSIGNORS: Mapping[str, Sequence[str]] = {
    "java": ("uniform", "range"),
    "confluent-kafka": ("uniform", "range"),
    "franz-go": ("uniform",),
}
"""The clients that have the consumer protocol, and what the server is to share partitions by."""

_JAVA_STRATEGIES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
_PYTHON = {
    "confluent-kafka": "confluent",
    "kafka-python": "kafka_python",
    "aiokafka": "aio_kafka",
    "muster": "muster_sdk",
}
_GO = {"franz-go": "go", "sarama": "sarama"}


@dataclass(slots=True)
class Member:
    """A running member; `held` and `read` are what its own events say."""

    name: str
    client: str
    program: JavaProgram

    @property
    def events(self) -> list[Event]:
        return list(self.program.events)

    def held(self) -> set[str]:
        """Names such as orders-0."""
        held: set[str] = set()
        for event in self.events:
            if event["event"] == "assigned":
                held |= set(event["partitions"])
            elif event["event"] in ("revoked", "lost"):
                held -= set(event["partitions"])
        return held

    def read(self) -> int:
        """How many records it has read."""
        return sum(event["count"] for event in self.events if event["event"] == "records")

    def count(self, *names: str) -> int:
        """How many events of these names it has printed."""
        return sum(event["event"] in names for event in self.events)

    def close(self) -> None:
        """Leaves the group, and ends."""
        self.program.send("close")
        assert self.program.wait(WITHIN_S) == 0, self.describe()

    def kill(self) -> None:
        """SIGKILL: a crash, without a word to the group."""
        self.program.kill()

    def describe(self) -> str:
        lines = [str(event) for event in self.events[-12:]] + self.program.log[-12:]
        return f"{self.name}:\n  " + "\n  ".join(lines)


def start(
    client: str,
    server: Served,
    name: str,
    *,
    strategies: Sequence[str] = ("range",),
    group: str = "classic",
    instance_id: str = "",
    protocol: str = "classic",
    assignor: str = "",
    session_ms: int = SESSION_MS,
    security: Security = NO_SECURITY,
) -> Member:
    """Starts a member that subscribes to the topic orders and commits after each poll.

    Of the strategies and the session a classic member says, of the assignor one of the consumer
    protocol; where that is empty the server chooses. The client ``muster`` is the SDK: its server
    is the gRPC listener, and it commits without reading.

    Raises MissingPrerequisite where what the client needs is not there.
    """
    options = ["--bootstrap", server.kafka, "--group", group, "--topics", "orders"]
    options += ["--client-id", name, "--protocol", protocol]
    if security != NO_SECURITY and client != "java":
        options += ["--security", security.format()]
    if instance_id:
        options += ["--instance-id", instance_id]
    if assignor and client != "franz-go":
        options += ["--assignor", assignor]
    if client == "java":
        options += _java_options(protocol, strategies, session_ms, security)
        jvm_options = compute_jvm_options(security)
        command = java_command(HERE / "java", "ConsumerProgram", options, jvm_options=jvm_options)
    else:
        options += ["--strategies", ",".join(strategies), "--session-ms", str(session_ms)]
        command = _compute_command(client, options)
    return Member(f"{name} ({client})", client, JavaProgram(command))


def _compute_command(client: str, options: list[str]) -> list[str]:
    if client in _GO:
        return [str(build_go(HERE / _GO[client], client)), *options]
    return [sys.executable, "-m", f"tests.interop.python.{_PYTHON[client]}", *options]


def _java_options(
    protocol: str, strategies: Sequence[str], session_ms: int, security: Security
) -> list[str]:
    # A leader that reaches no broker at all would else forget its metadata, and ask for a
    # rebalance when it knows it again: that would hide whether the server lost something.
    settings = {"reconnect.backoff.max.ms": "1000", "metadata.recovery.strategy": "none"}
    if protocol == "classic":
        classes = [f"org.apache.kafka.clients.consumer.{_JAVA_STRATEGIES[s]}" for s in strategies]
        settings |= {
            "partition.assignment.strategy": ",".join(classes),
            "session.timeout.ms": str(session_ms),
            "heartbeat.interval.ms": "300",
        }
    settings |= compute_java_settings(security)
    pairs = [word for pair in settings.items() for word in ("--set", "=".join(pair))]
    return ["--commit", *pairs]


def wait_for(members: Sequence[Member], condition: Callable[[], bool], what: str) -> None:
    """Until the condition holds. Raises AssertionError with what the members said, in time and
    when one of them has ended by an error."""
    wait_until(
        condition,
        lambda: "\n".join([what, *(member.describe() for member in members)]),
        WITHIN_S,
        is_hopeless=lambda: any((member.program.exit_code or 0) > 0 for member in members),
    )


def wait_until_shared(members: Sequence[Member], wanted: set[str]) -> None:
    """Until each wanted partition has one owner, and no member more than one above another."""

    def check() -> bool:
        held = [member.held() for member in members]
        sizes = [len(names) for names in held]
        complete = set().union(*held) == wanted and sum(sizes) == len(wanted)
        return complete and max(sizes) - min(sizes) <= 1

    wait_for(members, check, "each partition has one owner")


def fetch_committed(server: Served, group: str, topic: str, partitions: int) -> list[int]:
    """The committed offset of each partition, as a client is told; negative without one."""
    consumer = Consumer({"bootstrap.servers": server.kafka, "group.id": group})
    try:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return [found.offset for found in consumer.committed(asked, WITHIN_S)]
    finally:
        consumer.close()


def describe_group(server: Served, group: str = "classic") -> Any:
    """A group as confluent-kafka's admin client describes it."""
    admin = AdminClient({"bootstrap.servers": server.kafka})
    return admin.describe_consumer_groups([group])[group].result(WITHIN_S)
