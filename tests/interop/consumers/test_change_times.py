"""How soon changes reach unmodified clients, and what parked heartbeats cost them: nothing seen."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.interop.confluent_client import ConfluentClient
from tests.interop.consumers.test_java_consumer import NAMES, PARTITIONS, consumer, wait_until_held
from tests.kafka.java import JavaProgram
from tests.server import MusterServer
from tests.support.waiting import poll_until

ROUNDS = 5
COMMITS = 5
PARK_S = 0.5
"""`gateway.park.ms` where nothing else is said."""
JOIN_S = 0.3
LEAVE_S = PARK_S
COMMIT_S = 0.2
BUSY = 3.0
"""What a busy machine may add, as a factor: 0.9 s is still far from Kafka's 5 s."""
SOON_S = 0.005
BETWEEN_COMMITS_S = 0.2
SETTLE_S = 1.5
"""After so long without news the heartbeats of a member are parked for all of the park time."""
SETTLED_ROUNDS = 2
TRIES = 3
"""A machine that stands still is late once, a server that is late is so again."""

pytestmark = pytest.mark.alone


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": PARTITIONS}) as running:
        yield running


class Figures:
    """Compares times with their limits, and tells them after the run."""

    def __init__(self, client: str, tell: Callable[[str, object], None]) -> None:
        self._client = client
        self._tell = tell
        self.late: list[tuple[str, list[float]]] = []

    def note(self, what: str, times_s: list[float], limit_s: float) -> None:
        """The median keeps the limit on a machine that may be busy. Of two it is the better one:
        their mean is half of what the machine stood still for in the other.
        """
        median_s, longest_s = statistics.median_low(times_s), max(times_s)
        told = f"median {median_s:.3f} s, longest {longest_s:.3f} s, limit {limit_s:.1f} s"
        self._tell("note", f"{self._client}: {what}: {told}")
        if median_s > limit_s * BUSY:
            self.late.append((what, times_s))


def check_in_time(
    client: str, tell: Callable[[str, object], None], measure_rounds: Callable[[Figures], None]
) -> None:
    """Measures again where something was late."""
    for _ in range(TRIES):
        figures = Figures(client, tell)
        measure_rounds(figures)
        if not figures.late:
            return
    raise AssertionError(figures.late)


def check_no_timeout(lines: list[str]) -> None:
    found = re.compile(r"time[- ]?out|timed[- _]out|REQTMOUT", re.IGNORECASE)
    assert not [line for line in lines if found.search(line)]


@pytest.mark.timeout(300)
def test_confluent_kafka_learns_at_once(
    server: MusterServer, record_property: Callable[[str, object], None]
) -> None:
    check_in_time("confluent-kafka", record_property, partial(measure_confluent, server))


def measure_confluent(server: MusterServer, figures: Figures) -> None:
    one = ConfluentClient(server, "one")
    poll_until([one], lambda: one.held == NAMES, "one has all", SOON_S)
    clients = [one]
    joins, commits, leaves, closes, takeovers = [], [], [], [], []
    for number in range(ROUNDS):
        began = time.monotonic()
        two = ConfluentClient(server, f"two-{number}")
        clients.append(two)
        poll_until([one, two], lambda two=two: len(two.held) == 2, "two has its half", SOON_S)
        joins.append(time.monotonic() - began)
        poll_until([one, two], lambda: len(one.held) == 2, "one has its half", SOON_S)
        for index in range(COMMITS if number < SETTLED_ROUNDS else 0):
            until = time.monotonic() + (BETWEEN_COMMITS_S if index else SETTLE_S)
            poll_until([one, two], lambda until=until: time.monotonic() > until, "it settles")
            began = time.monotonic()
            two.consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
            commits.append(time.monotonic() - began)
        began = time.monotonic()
        if number % 2:
            two.consumer.unsubscribe()
            # Its callback comes with a poll, and the partitions are given back after it.
            poll_until([two], lambda two=two: not two.held, "two gives its half back", SOON_S)
            leaves.append(time.monotonic() - began)
        else:
            two.consumer.close()
            closes.append(time.monotonic() - began)
        leaving = [one, two] if number % 2 else [one]
        takeovers.append(poll_until(leaving, lambda: one.held == NAMES, "one has all", SOON_S))
        if number % 2:
            two.consumer.close()
    one.consumer.close()
    figures.note("a second consumer has its partitions", joins, JOIN_S)
    figures.note("close()", closes, LEAVE_S)
    figures.note("unsubscribe()", leaves, LEAVE_S)
    figures.note("who is left has all partitions", takeovers, JOIN_S)
    figures.note("a commit", commits, COMMIT_S)
    check_no_timeout([line for client in clients for line in client.log + client.errors])


@pytest.mark.java
@pytest.mark.timeout(300)
def test_java_learns_at_once(
    server: MusterServer, record_property: Callable[[str, object], None]
) -> None:
    check_in_time("Java", record_property, partial(measure_java, server))


def measure_java(server: MusterServer, figures: Figures) -> None:
    # Java calls its listeners within poll(), and waits in it for as long as it is told.
    often = ("--poll-ms", "20")
    with consumer(server, "one", *often) as one, consumer(server, "two", *often) as two:
        wait_until_held([one, two], NAMES, each=2)
        joins, commits, leaves, takeovers = [], [], [], []
        for number in range(ROUNDS):
            for index in range(COMMITS if number < SETTLED_ROUNDS else 0):
                time.sleep(BETWEEN_COMMITS_S if index else SETTLE_S)
                commits.append(measure(two, "commit", "committed"))
            leaves.append(measure(two, "unsubscribe", "unsubscribed"))
            began = time.monotonic()
            wait_until_held([one], NAMES, each=PARTITIONS)
            takeovers.append(time.monotonic() - began)
            two.send("subscribe orders")
            found = two.wait_for("assigned", lambda event: len(event["partitions"]) == 2)
            joins.append(found["after_ms"] / 1_000)
            wait_until_held([one, two], NAMES, each=2)
        closes = [measure(two, "close", "closed")]
        wait_until_held([one], NAMES, each=PARTITIONS)
        closes.append(measure(one, "close", "closed"))
        figures.note("a second consumer has its partitions", joins, JOIN_S)
        figures.note("close()", closes, LEAVE_S)
        figures.note("unsubscribe()", leaves, LEAVE_S)
        figures.note("who is left has all partitions", takeovers, JOIN_S)
        figures.note("a commit", commits, COMMIT_S)
        check_no_timeout(one.log + two.log)


def measure(program: JavaProgram, command: str, event: str) -> float:
    """Seconds that the client took for a command, by its own clock."""
    program.send(command)
    return float(program.wait_for(event)["took_ms"]) / 1_000
