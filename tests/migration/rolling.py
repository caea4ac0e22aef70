"""The rolling migration: classic members replaced one by one by new ones, and all the way back.

Messages flow all the while, and in the middle of each direction the server is killed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from tests.interop.classic_clients import describe_group
from tests.kafka.java import Event
from tests.migration.check_logs import (
    AFTER_KILL_MS,
    Standstill,
    compute_closes,
    compute_standstills,
    find_double_owners,
    find_unread,
)
from tests.migration.flow import Flow, wait_until_committed
from tests.migration.members import (
    AIOKAFKA,
    CONFLUENT,
    GRPC,
    JAVA,
    KAFKA_PYTHON,
    Hosts,
    Member,
)
from tests.migration.starvation import Starvation
from tests.server import MusterServer

CLASSIC = (JAVA, CONFLUENT, KAFKA_PYTHON, AIOKAFKA, JAVA, CONFLUENT)
NEW = (JAVA, CONFLUENT, GRPC)
GROUP, TOPIC = "g", "orders"
PARTITIONS_EACH = 2
"""Of each member: while one more has joined than there are to be, each still has some."""
NEVER_MS = 3_600_000
HEARTBEAT_S = 3.0
"""The clients' default interval. So long after a member has joined or committed it is out of
reach, and where all have to join again the others wait for it."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.migration.policy": "bidirectional",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How large a migration is: members, and the times between two messages of a partition, two
    polls of a member and two commits of its own accord."""

    members: int
    message_ms: int = 100
    poll_ms: int = 100
    commit_ms: int = NEVER_MS

    @property
    def partitions(self) -> int:
        return self.members * PARTITIONS_EACH


@dataclass(slots=True)
class Report:
    """What a migration came to."""

    double_owners: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    backward: list[str] = field(default_factory=list)
    failures: list[Event] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    standstills: list[tuple[Standstill, float]] = field(default_factory=list)
    """The longest of each member, and for how many ms of it the machine was starved."""
    closes: list[tuple[Standstill, float]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    messages: int = 0
    took_s: float = 0.0


class Migration:
    """One group on its way."""

    def __init__(self, server: MusterServer, hosts: Hosts, plan: Plan) -> None:
        self._server = server
        self._hosts = hosts
        self._plan = plan
        self._names = {f"{TOPIC}-{number}" for number in range(plan.partitions)}
        self.running: list[Member] = []
        self.kills_ms: list[int] = []
        self.types: list[str] = []

    def begin(self) -> None:
        """The classic members that there are first."""
        for client in self._choose(CLASSIC):
            self.running.append(self._hosts.start(client, "classic"))
        self._hosts.wait_until_shared(self.running, self._names)

    def go(self, protocol: str) -> None:
        """Replace each member; the server is killed in the middle."""
        clients = self._choose(CLASSIC if protocol == "classic" else NEW)
        for number, client in enumerate(clients):
            if number == self._plan.members // 2:
                self._kill_server()
            self._replace(number, client, protocol)
        self._hosts.wait_until_shared(self.running, self._names)
        self.types.append(describe_group(self._server, GROUP).type.name)

    def _choose(self, clients: tuple[str, ...]) -> Iterator[str]:
        return islice(cycle(clients), self._plan.members)

    def _replace(self, number: int, client: str, protocol: str) -> None:
        """The new one works before the old one leaves."""
        newcomer = self._hosts.start(client, protocol)
        self._hosts.wait_until_read([newcomer])
        if protocol == "classic" and number == self._plan.members - 1:
            # All join again when the last one leaves, and wait for each other.
            self._hosts.wait_until_shared([*self.running, newcomer], self._names)
            time.sleep(HEARTBEAT_S + 1)
        leaving, self.running[number] = self.running[number], newcomer
        self._hosts.close(leaving)

    def _kill_server(self) -> None:
        """SIGKILL, at once a new start, and what members may take to find it."""
        self._hosts.wait_until_shared(self.running, self._names)
        self.kills_ms.append(time.time_ns() // 1_000_000)
        self._server.kill()
        self._server.start()
        over_ms = self.kills_ms[-1] + AFTER_KILL_MS
        time.sleep(max(0.0, over_ms / 1_000 - time.time()))
        self._hosts.wait_until_read(self.running, over_ms)


def migrate(folder: Path, plan: Plan) -> Report:
    """Carry it out. Raises AssertionError where it does not go on."""
    began = time.monotonic()
    report = Report()
    with (
        MusterServer(folder / "data", topics={TOPIC: plan.partitions}, settings=SETTINGS) as server,
        Hosts(server, GROUP, TOPIC, poll_ms=plan.poll_ms, commit_ms=plan.commit_ms) as hosts,
        Starvation() as starvation,
    ):
        migration = Migration(server, hosts, plan)
        migration.begin()
        with Flow(server, GROUP, TOPIC, plan.partitions, plan.message_ms / 1_000) as flow:
            hosts.wait_until_read(migration.running)
            for protocol in ("consumer", "classic"):
                migration.go(protocol)
            count = flow.stop_producing()
            counts = {f"{TOPIC}-{number}": count for number in range(plan.partitions)}
            hosts.wait_until(lambda: not find_unread(hosts.events, counts), "all is read")
            for member in migration.running:
                hosts.close(member)
            wait_until_committed(flow, count)
        events = report.events = hosts.events
        report.double_owners = find_double_owners(events)
        report.unread = find_unread(events, counts)
        report.backward = flow.backward
        report.failures = [each for each in events if each["event"] == "failed"]
        report.types = migration.types
        report.messages = count * plan.partitions
        for each in compute_standstills(events, migration.kills_ms):
            if each.member not in {known.member for known, _ in report.standstills}:
                starved_ms = starvation.compute_ms(each.begin_ms, each.end_ms)
                report.standstills.append((each, starved_ms))
        for each in compute_closes(events):
            report.closes.append((each, starvation.compute_ms(each.begin_ms, each.end_ms)))
    report.took_s = time.monotonic() - began
    return report
