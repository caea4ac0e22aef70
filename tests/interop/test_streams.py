"""Kafka Streams 4.3 as a classic group, unmodified, on our wire: it keeps repartition topics and
changelogs here, and its group cannot be upgraded, for what it assigns only Streams understands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.groups import CHECKOUT
from tests.interop.classic_clients import Member, describe_group, wait_for
from tests.interop.confluent_client import WITHIN_S, produce
from tests.kafka.jars import BROKER, STREAMS
from tests.kafka.java import JavaProgram, java_command
from tests.server import MusterServer

SOURCES = Path(__file__).parent / "java_streams"
GROUP = "shop"
REMAINDERS = 5
EACH = 8
"""How many records of each remainder are produced at a time."""
TOPICS = {"orders": 4, "totals": 1}
REFUSED = "its assignment has user data of an assignor, which would be lost"

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(300)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    settings = {"group.initial.rebalance.delay.ms": 0}
    with MusterServer(tmp_path / "data", topics=TOPICS, settings=settings) as running:
        yield running


@pytest.fixture
def members() -> Iterator[list[Member]]:
    """Those that the test has started; they end with it."""
    started: list[Member] = []
    yield started
    for member in started:
        member.kill()


class Totals:
    """What the application has counted, by remainder: the last that it wrote of each."""

    def __init__(self, server: MusterServer) -> None:
        self._server = server
        self._produced = 0
        self._consumer = Consumer({"bootstrap.servers": server.kafka, "group.id": "reader"})
        self._consumer.assign([TopicPartition("totals", 0, 0)])
        self._counted: dict[str, int] = {}

    def produce_and_wait(self, members: list[Member]) -> None:
        """Until each new record is counted, exactly once."""
        count = REMAINDERS * EACH
        produce(self._server, range(self._produced, self._produced + count))
        self._produced += count
        wait_for(members, self._are_complete, f"{self._produced} records are counted")
        each = self._produced // REMAINDERS
        assert self._counted == {f"remainder-{number}": each for number in range(REMAINDERS)}

    def close(self) -> None:
        self._consumer.close()

    def _are_complete(self) -> bool:
        for message in self._consumer.consume(num_messages=100, timeout=0.1):
            if message.error() is None:
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                self._counted[key.decode()] = int(value)
        return sum(self._counted.values()) >= self._produced


def start_streams(server: MusterServer, state: Path, name: str, threads: int) -> Member:
    options = ["--bootstrap", server.kafka, "--application", GROUP, "--state-dir", str(state)]
    options += ["--threads", str(threads), "--remainders", str(REMAINDERS)]
    command = java_command(SOURCES, "StreamsProgram", options, (STREAMS, BROKER))
    return Member(name, "streams", JavaProgram(command))


def wait_until_settled(server: MusterServer, members: list[Member], count: int) -> Any:
    """Until the group is stable with so many members, each with something to do; the group."""
    found: list[Any] = []

    def check() -> bool:
        found.append(describe_group(server, GROUP))
        busy = [member for member in found[-1].members if member.assignment.topic_partitions]
        return found[-1].state.name == "STABLE" and len(busy) == count

    wait_for(members, check, f"{count} threads share the work")
    return found[-1]


def test_an_application_counts_through_restarts_and_handing_over(
    server: MusterServer, members: list[Member], tmp_path: Path
) -> None:
    totals = Totals(server)
    members.append(start_streams(server, tmp_path / "one", "one", threads=2))
    totals.produce_and_wait(members)
    settled = wait_until_settled(server, members, 2)
    assert settled.partition_assignor == "stream"
    check_upgrade_refused(server)
    assert member_ids(describe_group(server, GROUP)) == member_ids(settled)

    server.kill()
    server.start()
    totals.produce_and_wait(members)
    assert member_ids(describe_group(server, GROUP)) == member_ids(settled)

    members.append(start_streams(server, tmp_path / "two", "two", threads=1))
    wait_until_settled(server, members, 3)
    totals.produce_and_wait(members)
    members[0].close()
    wait_until_settled(server, members, 1)
    totals.produce_and_wait(members)
    members[1].close()
    totals.close()
    assert not [member.describe() for member in members if member.count("failed")]


def member_ids(group: Any) -> set[str]:
    return {member.member_id for member in group.members}


def check_upgrade_refused(server: MusterServer) -> None:
    """The plan says so, with the reason, and who joins with the new protocol is told Kafka's."""
    planned = subprocess.run(
        [sys.executable, "-m", "cli", "migrate", "plan", GROUP, "--server", server.grpc],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=True,
    ).stdout
    assert planned.startswith(f"{GROUP}: BLOCKED: Stable, stream"), planned
    assert [REFUSED in line for line in planned.splitlines()[-2:]] == [True, True], planned

    newcomer = Consumer(
        {"bootstrap.servers": server.kafka, "group.id": GROUP, "group.protocol": "consumer"}
    )
    try:
        newcomer.subscribe(["orders"])
        message = newcomer.poll(WITHIN_S)
        assert message is not None
        assert "The group id does not exist" in str(message.error())
    finally:
        newcomer.close()
