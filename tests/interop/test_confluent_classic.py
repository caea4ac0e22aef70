"""confluent-kafka (librdkafka) with ``group.protocol=classic``, unmodified, on our wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.confluent_client import ConfluentClient, poll_until, produce
from tests.server import MusterServer

PARTITIONS = 4
RECORDS = 40
NAMES = {f"orders-{number}" for number in range(PARTITIONS)}
CLASSIC = {
    "group.protocol": "classic",
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 200,
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": PARTITIONS}) as running:
        yield running


@pytest.mark.timeout(240)
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_classic_members_share_commit_and_survive_a_restart(
    server: MusterServer, strategy: str
) -> None:
    settings = {**CLASSIC, "partition.assignment.strategy": strategy}
    produce(server, range(RECORDS))
    one = ConfluentClient(server, "one", settings=settings)
    poll_until([one], lambda: len(one.values) == RECORDS, "one reads all")
    assert one.held == NAMES
    two = ConfluentClient(server, "two", settings=settings)
    both = [one, two]
    poll_until(both, lambda: len(one.held) == 2 and len(two.held) == 2, "they share")
    assert one.held | two.held == NAMES

    server.kill()
    server.start()
    produce(server, range(RECORDS, RECORDS + PARTITIONS))
    poll_until(
        both, lambda: len(one.values) + len(two.values) == RECORDS + PARTITIONS, "they go on"
    )
    assert sorted(one.values + two.values) == list(range(RECORDS + PARTITIONS))

    one.consumer.close()
    poll_until([two], lambda: two.held == NAMES, "two takes over")
    assert two.committed("orders", PARTITIONS) == [RECORDS // PARTITIONS + 1] * PARTITIONS
    two.consumer.close()


@pytest.mark.timeout(240)
def test_a_static_member_comes_back_without_a_rebalance(server: MusterServer) -> None:
    produce(server, range(RECORDS))
    one, two = (
        ConfluentClient(server, name, settings={**CLASSIC, "group.instance.id": name})
        for name in ("one", "two")
    )
    both = [one, two]
    poll_until(both, lambda: len(one.held) == 2 and len(two.held) == 2, "they share")
    holding, others = set(one.held), set(two.held)
    one.consumer.close()
    returned = ConfluentClient(server, "one", settings={**CLASSIC, "group.instance.id": "one"})
    poll_until([returned, two], lambda: returned.held == holding, "one is back")
    assert two.held == others
    returned.consumer.close()
    two.consumer.close()
