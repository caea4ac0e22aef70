"""A member of a group with any client library, each a process of its own.

Heartbeats and sessions are the clients' own defaults, so that pauses are those of real members.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.groups import CHECKOUT
from tests.interop.classic_clients import Member
from tests.interop.go_programs import build_go
from tests.interop.js_programs import js_command
from tests.kafka.jars import BROKER, KAFKA_2_8, KAFKA_3_9
from tests.kafka.java import JavaProgram, java_command
from tests.kafka.release import LOG4J_1

JAVA, JAVA_3_9, JAVA_2_8 = "java", "java-3.9", "java-2.8"
CONFLUENT, KAFKA_PYTHON, AIOKAFKA = "confluent-kafka", "kafka-python", "aiokafka"
FRANZ, SARAMA, KAFKAJS = "franz-go", "sarama", "kafkajs"
CLIENTS: Final = (
    JAVA,
    JAVA_3_9,
    JAVA_2_8,
    CONFLUENT,
    KAFKA_PYTHON,
    AIOKAFKA,
    FRANZ,
    SARAMA,
    KAFKAJS,
)
COOPERATIVE: Final = (JAVA, JAVA_3_9, JAVA_2_8, CONFLUENT, KAFKA_PYTHON, FRANZ)
"""The clients that have cooperative-sticky."""
CONSUMER: Final = (JAVA, CONFLUENT, FRANZ)
"""The clients that have the consumer protocol."""

RANGE, ROUNDROBIN, COOPERATIVE_STICKY = "range", "roundrobin", "cooperative-sticky"
HEARTBEAT_MS, SESSION_MS = 3_000, 45_000

_INTEROP = CHECKOUT / "tests" / "interop"
_JARS = {JAVA: BROKER, JAVA_3_9: KAFKA_3_9, JAVA_2_8: KAFKA_2_8}
_MODULES = {CONFLUENT: "confluent", KAFKA_PYTHON: "kafka_python", AIOKAFKA: "aio_kafka"}
_GO = {FRANZ: "go", SARAMA: "sarama"}
_JAVA_STRATEGIES = {
    RANGE: "RangeAssignor",
    ROUNDROBIN: "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    COOPERATIVE_STICKY: "CooperativeStickyAssignor",
}


def start_member(
    client: str,
    bootstrap: str,
    name: str,
    *,
    group: str,
    topic: str,
    protocol: str = "classic",
    strategy: str = RANGE,
    instance_id: str = "",
    heartbeat_ms: int = HEARTBEAT_MS,
    session_ms: int = SESSION_MS,
    settings: Mapping[str, str] | None = None,
) -> Member:
    """Start a member that commits after each poll. kafkajs has its own strategy alone.

    `settings` are more of them, of Java clients alone. Raises MissingPrerequisite where what the
    client needs is not there.
    """
    if client in _JARS:
        of_java = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            **_compute_java_settings(protocol, strategy, heartbeat_ms, session_ms),
            **({"group.instance.id": instance_id} if instance_id else {}),
            **(settings or {}),
        }
        words = [topic, *map("=".join, of_java.items())]
        return Member(name, client, JavaProgram(_compute_java_command(client, words)))
    assert not settings, f"{client} takes no settings"
    if client == KAFKAJS:
        given = {
            "bootstrap": bootstrap,
            "group": group,
            "topics": topic,
            "clientId": name,
            "sessionMs": session_ms,
            "heartbeatMs": heartbeat_ms,
        }
        command = js_command(_INTEROP / "js", "member.js", json.dumps(given))
        return Member(name, client, JavaProgram(command))
    options = {
        "bootstrap": bootstrap,
        "group": group,
        "topics": topic,
        "client-id": name,
        "protocol": protocol,
        "strategies": strategy,
        "session-ms": str(session_ms),
        "heartbeat-ms": str(heartbeat_ms),
        **({"instance-id": instance_id} if instance_id else {}),
    }
    words = [word for pair in options.items() for word in (f"--{pair[0]}", pair[1])]
    return Member(name, client, JavaProgram([*_compute_command(client), *words]))


def _compute_command(client: str) -> Sequence[str]:
    if client in _GO:
        return [str(build_go(_INTEROP / _GO[client], client))]
    return [sys.executable, "-m", f"tests.interop.python.{_MODULES[client]}"]


def _compute_java_command(client: str, words: Sequence[str]) -> list[str]:
    return java_command(
        Path(__file__).parent / "java",
        "MemberProgram",
        words,
        (_JARS[client],),
        jvm_options=("-Xmx128m", LOG4J_1),
    )


def _compute_java_settings(
    protocol: str, strategy: str, heartbeat_ms: int, session_ms: int
) -> dict[str, str]:
    if protocol == "consumer":
        return {"group.protocol": protocol}
    return {
        "partition.assignment.strategy": (
            f"org.apache.kafka.clients.consumer.{_JAVA_STRATEGIES[strategy]}"
        ),
        "heartbeat.interval.ms": str(heartbeat_ms),
        "session.timeout.ms": str(session_ms),
    }
