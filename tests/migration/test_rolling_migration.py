"""A classic group is replaced by members of the consumer protocol, one by one, and back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.interop.classic_clients import (
    Member,
    describe_group,
    start,
    wait_for,
    wait_until_shared,
)
from tests.migration.flow import Flow, find_double_owners, wait_until_committed
from tests.server import MusterServer

PARTITIONS = 4
NAMES = {f"orders-{number}" for number in range(PARTITIONS)}
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.migration.policy": "bidirectional",
}
CLIENTS = ("confluent-kafka", "java")
"""In the order in which they are replaced. While Java leads, the assignment has no user data: a
group whose cooperative-sticky leader is librdkafka has, and is not converted, as with Kafka."""


@pytest.mark.java
@pytest.mark.timeout(300)
def test_members_are_replaced_one_by_one_and_back(tmp_path: Path) -> None:
    topics = {"orders": PARTITIONS}
    started: list[Member] = []
    with MusterServer(tmp_path / "data", topics=topics, settings=SETTINGS) as server:

        def join(client: str, protocol: str) -> Member:
            name = f"{client}-{protocol}-{len(started)}"
            strategies = ["cooperative-sticky"]
            started.append(
                start(client, server, name, group="g", strategies=strategies, protocol=protocol)
            )
            return started[-1]

        try:
            leader = join("java", "classic")
            wait_until_shared([leader], NAMES)
            running = [join("confluent-kafka", "classic"), leader]
            with Flow(server, "g", "orders", PARTITIONS) as flow:
                wait_until_shared(running, NAMES)
                for protocol in ("consumer", "classic"):
                    for number, client in enumerate(CLIENTS):
                        running[number].close()
                        running[number] = join(client, protocol)
                        wait_until_shared(running, NAMES)
                    found = describe_group(server, "g")
                    assert found.type.name == protocol.upper()
                wait_until_committed(flow, flow.stop_producing())
                check_logs(started, flow)
        finally:
            for member in started:
                member.kill()


@pytest.mark.timeout(240)
def test_a_group_that_librdkafka_leads_stays_classic(tmp_path: Path) -> None:
    """It repeats the members' sticky user data in the assignment; a conversion would lose them."""
    topics = {"orders": PARTITIONS}
    started: list[Member] = []
    with MusterServer(tmp_path / "data", topics=topics, settings=SETTINGS) as server:

        def join(name: str, protocol: str) -> Member:
            strategies = ["cooperative-sticky"]
            started.append(
                start("confluent-kafka", server, name, strategies=strategies, protocol=protocol)
            )
            return started[-1]

        try:
            running = [join("one", "classic")]
            wait_until_shared(running, NAMES)
            running.append(join("two", "classic"))
            wait_until_shared(running, NAMES)
            newcomer = join("three", "consumer")
            refused = "group id does not exist"
            wait_for(started, lambda: refused in str(newcomer.events), "three is refused")
            assert describe_group(server).type.name == "CLASSIC"
            wait_until_shared(running, NAMES)
            assert not newcomer.held()
        finally:
            for member in started:
                member.kill()


def check_logs(members: list[Member], flow: Flow) -> None:
    assert find_double_owners(members) == []
    assert flow.backward == []
    last = dict.fromkeys(NAMES, 0)
    for member in members:
        for event, after in pairwise([*member.events, {"event": ""}]):
            for name, offset in event.get("last", {}).items():
                last[name] = max(last[name], offset)
            # Java calls it lost, too, what it gives up because it closes while others rebalance.
            assert event["event"] != "lost" or after["event"] == "closed", member.describe()
    assert last == dict.fromkeys(NAMES, flow.count - 1)
    assert sum(member.read() for member in members) >= flow.count * PARTITIONS
