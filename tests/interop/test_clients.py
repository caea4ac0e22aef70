"""Clients of every library, unmodified, on our wire: one suite for all, in both protocols.

`make interop` runs every client with every strategy or assignor it has; elsewhere run the quick
ones, each with one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.classic_clients import (
    ALL,
    ASSIGNORS,
    SHORT_SESSION_MS,
    STRATEGIES,
    Member,
    describe_group,
    fetch_committed,
    start,
    wait_for,
    wait_until_shared,
)
from tests.interop.confluent_client import produce
from tests.server import MusterServer

PARTITIONS = 4
NAMES = {f"orders-{number}" for number in range(PARTITIONS)}
AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
SETTINGS = {
    **AT_ONCE,
    "group.consumer.min.session.timeout.ms": SHORT_SESSION_MS,
    "group.consumer.session.timeout.ms": SHORT_SESSION_MS,
}
QUICK = {"java": "cooperative-sticky", "confluent-kafka": "roundrobin"}
"""The clients that always run, and the strategy with which they do."""
QUICK_ASSIGNORS = {"java": "uniform", "confluent-kafka": "range"}
JOIN_AGAIN = ("franz-go", "sarama")
"""Clients that give up what they have after any heartbeat without an answer, and join again."""
CLASSIC, CONSUMER = "classic", "consumer"


@dataclass(frozen=True, slots=True)
class Case:
    """A client, the protocol that it is to speak, and what its members share partitions by."""

    client: str
    protocol: str
    strategy: str

    def __str__(self) -> str:
        return f"{self.protocol}-{self.client}-{self.strategy}"

    def start(self, server: MusterServer, name: str, **more: Any) -> Member:
        """Starts a member; the rest is as `start` has it."""
        return start(
            self.client,
            server,
            name,
            strategies=[self.strategy],
            assignor=self.strategy if self.protocol == CONSUMER else "",
            protocol=self.protocol,
            **more,
        )


def list_cases() -> list[Case]:
    """All that there is, or the quick ones."""
    if not ALL:
        quick = {CLASSIC: QUICK, CONSUMER: QUICK_ASSIGNORS}
        return [
            Case(client, protocol, strategy)
            for protocol, strategies in quick.items()
            for client, strategy in strategies.items()
        ]
    known = {CLASSIC: STRATEGIES, CONSUMER: ASSIGNORS}
    return [
        Case(client, protocol, strategy)
        for protocol, of_clients in known.items()
        for client, strategies in of_clients.items()
        for strategy in strategies
    ]


CASES = list_cases()
CLIENTS = {
    protocol: list(dict.fromkeys(case.client for case in CASES if case.protocol == protocol))
    for protocol in (CLASSIC, CONSUMER)
}
STATIC = [
    next(case for case in CASES if (case.client, case.protocol) == (client, protocol))
    for protocol, clients in CLIENTS.items()
    for client in clients
    if (client, protocol) != ("franz-go", CONSUMER)
]
"""Not franz-go 1.22 in the consumer protocol: it leaves without its instance id."""
MIXED = [
    (protocol, leader)
    for protocol, clients in CLIENTS.items()
    for leader in (clients if ALL else ["java"])
]

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    topics = {"orders": PARTITIONS}
    with MusterServer(tmp_path / "data", topics=topics, settings=SETTINGS) as running:
        yield running


@pytest.fixture
def patient_server(tmp_path: Path) -> Iterator[MusterServer]:
    """One with the session timeout that is the default."""
    topics = {"orders": PARTITIONS}
    with MusterServer(tmp_path / "data", topics=topics, settings=AT_ONCE) as running:
        yield running


@pytest.fixture
def members() -> Iterator[list[Member]]:
    """Those that a test has started; they end with it."""
    started: list[Member] = []
    yield started
    for member in started:
        member.kill()


class Records:
    """Produces a record to each partition at a time, and knows how many there are."""

    def __init__(self, server: MusterServer, partitions: int = PARTITIONS) -> None:
        self._server = server
        self._partitions = partitions
        self.count = 0

    @property
    def each(self) -> int:
        """How many records each partition has."""
        return self.count // self._partitions

    def produce(self, each: int = 1) -> None:
        values = range(self.count, self.count + each * self._partitions)
        produce(self._server, values, partitions=self._partitions)
        self.count = values.stop

    def wait_until_processed(self, members: Sequence[Member]) -> None:
        """Until they have read each record once, and have committed it."""
        wait_for(
            members,
            lambda: sum(member.read() for member in members) >= self.count,
            f"{self.count} records are read",
        )
        wait_for(members, lambda: min(self.committed()) == self.each, "all is committed")
        assert sum(member.read() for member in members) == self.count

    def committed(self, group: str = "classic") -> list[int]:
        return fetch_committed(self._server, group, "orders", self._partitions)


def count_moves(members: Sequence[Member]) -> int:
    return sum(member.count("assigned", "revoked", "lost") for member in members)


def check_no_complaint(members: Sequence[Member]) -> None:
    for member in members:
        assert not member.count("commit-failed", "failed"), member.describe()
        assert member.client in JOIN_AGAIN or not member.count("lost"), member.describe()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_members_share_commit_and_survive_restarts(
    server: MusterServer, members: list[Member], case: Case
) -> None:
    def join(name: str) -> Member:
        members.append(case.start(server, name))
        return members[-1]

    records = Records(server)
    one, two = join("one"), join("two")
    wait_until_shared([one, two], NAMES)
    records.produce(10)
    records.wait_until_processed(members)

    moves = count_moves(members)
    server.terminate()
    server.start()
    records.produce()
    records.wait_until_processed(members)
    server.kill()
    server.start()
    records.produce()
    records.wait_until_processed(members)
    if case.client not in JOIN_AGAIN:
        assert count_moves(members) == moves, "a restart of the server moves nothing"
    wait_until_shared([one, two], NAMES)

    doomed = case.start(server, "doomed", session_ms=SHORT_SESSION_MS)
    try:
        wait_until_shared([one, two, doomed], NAMES)
    finally:
        doomed.kill()
    wait_until_shared([one, two], NAMES)
    records.produce()
    records.wait_until_processed(members)
    one.close()
    wait_until_shared([two], NAMES)
    records.produce()
    records.wait_until_processed(members)
    check_no_complaint(members)
    if case.protocol == CLASSIC:
        assert describe_group(server).partition_assignor == case.strategy


@pytest.mark.parametrize("case", STATIC, ids=str)
def test_static_members_come_back_to_what_they_had(
    patient_server: MusterServer, members: list[Member], case: Case
) -> None:
    def join(name: str) -> Member:
        members.append(case.start(patient_server, name, instance_id=name))
        return members[-1]

    one, two = join("one"), join("two")
    wait_until_shared([one, two], NAMES)
    holding, moves = one.held(), count_moves([two])
    if case.protocol == CLASSIC:
        one.kill()
    else:
        # Where it crashes, no other can have its instance id until its session ends.
        one.close()
    returned = join("one")
    wait_for([returned, two], lambda: returned.held() == holding, "one is back")
    assert count_moves([two]) == moves
    check_no_complaint([returned, two])


@pytest.mark.parametrize(("protocol", "leader"), MIXED)
def test_clients_of_different_libraries_share_one_group(
    tmp_path: Path, members: list[Member], protocol: str, leader: str
) -> None:
    others = [client for client in CLIENTS[protocol] if client != leader]
    partitions = 2 * (1 + len(others))
    names = {f"orders-{number}" for number in range(partitions)}
    topics = {"orders": partitions}
    with MusterServer(tmp_path / "data", topics=topics, settings=AT_ONCE) as server:
        records = Records(server, partitions)
        for client in [leader, *others]:
            members.append(start(client, server, client, protocol=protocol))
            wait_for(members, lambda: bool(members[-1].held()), "the newcomer has its share")
        wait_until_shared(members, names)
        records.produce(2)
        records.wait_until_processed(members)
        server.kill()
        server.start()
        records.produce()
        records.wait_until_processed(members)
        for left in range(1, len(members)):
            members[left - 1].close()
            wait_until_shared(members[left:], names)
        records.produce()
        records.wait_until_processed(members)
        check_no_complaint(members)


@pytest.mark.parametrize("client", CLIENTS[CLASSIC] if ALL else ["confluent-kafka"])
def test_another_strategy_takes_two_bounces(
    server: MusterServer, members: list[Member], client: str
) -> None:
    running: list[Member] = []

    def bounce(leaving: Member | None, strategies: Sequence[str]) -> None:
        if leaving is not None:
            leaving.close()
            running.remove(leaving)
        running.append(start(client, server, "member", strategies=strategies))
        members.append(running[-1])
        wait_until_shared(running, NAMES)

    records = Records(server)
    records.produce()
    for _ in range(2):
        bounce(None, ["range"])
    records.wait_until_processed(members)
    check_refused(server, running, client)
    for strategies in (["roundrobin", "range"], ["roundrobin"]):
        for leaving in list(running):
            bounce(leaving, strategies)
            records.produce()
            records.wait_until_processed(members)
    assert describe_group(server).partition_assignor == "roundrobin"
    check_no_complaint(members)


def check_refused(server: MusterServer, running: Sequence[Member], client: str) -> None:
    """A member with nothing in common is told so, and nobody else sees anything of it."""
    ids, moves = member_ids(server), count_moves(running)
    newcomer = start(client, server, "newcomer", strategies=["roundrobin"])
    try:
        wait_for(running, lambda: "inconsistent" in complaint(newcomer), "it is refused")
        assert not newcomer.held()
    finally:
        newcomer.kill()
    assert member_ids(server) == ids
    assert count_moves(running) == moves
    assert describe_group(server).partition_assignor == "range"


def member_ids(server: MusterServer) -> set[str]:
    return {member.member_id for member in describe_group(server).members}


def complaint(member: Member) -> str:
    """What the client says of errors, in events and in its log."""
    return " ".join([*map(str, member.events), *member.program.log]).lower()
