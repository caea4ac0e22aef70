"""confluent-kafka (librdkafka) with ``group.protocol=consumer``, unmodified, on our wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.confluent_client import (
    WITHIN_S,
    ConfluentClient,
    make_topic,
    produce,
)
from tests.server import MusterServer
from tests.support.waiting import poll_until

PARTITIONS = 4
RECORDS = 40
NAMES = {f"orders-{number}" for number in range(PARTITIONS)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    topics = {"orders": PARTITIONS, "payments": PARTITIONS}
    with MusterServer(tmp_path / "data", topics=topics) as running:
        yield running


def instance(server: MusterServer, name: str) -> ConfluentClient:
    """A static member that subscribes by pattern."""
    return ConfluentClient(
        server,
        name,
        group="static",
        topics=["^orders.*"],
        settings={"group.instance.id": name, "topic.metadata.refresh.interval.ms": 1000},
    )


@pytest.mark.timeout(240)
def test_static_members_with_a_pattern_keep_their_partitions_while_away(
    server: MusterServer,
) -> None:
    produce(server, range(RECORDS))
    produce(server, range(RECORDS), "payments")
    one, two = instance(server, "one"), instance(server, "two")
    both = [one, two]
    poll_until(both, lambda: len(one.held) == 2 and len(two.held) == 2, "they share")
    poll_until(both, lambda: len(one.values + two.values) == RECORDS, "they read all")
    assert one.held | two.held == NAMES, "what the pattern matches alone"
    holding = set(one.held)

    one.consumer.close()
    server.kill()
    server.start()
    produce(server, range(RECORDS, RECORDS + PARTITIONS))
    poll_until([two], lambda: len(two.values) >= RECORDS // 2 + 2, "two goes on")
    assert not two.held & holding, "an instance that is away keeps its partitions"
    returned = instance(server, "one")
    both = [returned, two]
    poll_until(both, lambda: returned.held == holding, "one has its partitions again")
    read = RECORDS + PARTITIONS
    poll_until(
        both, lambda: len(one.values + returned.values + two.values) == read, "they read the rest"
    )
    assert sorted(one.values + returned.values + two.values) == list(range(read))

    make_topic(server, "orders-new")
    more = {f"orders-new-{number}" for number in range(PARTITIONS)}
    poll_until(both, lambda: returned.held | two.held == NAMES | more, "a topic that matches")
    intruder = instance(server, "two")
    poll_until([*both, intruder], lambda: bool(intruder.errors), "an instance that is in use")
    assert "instance ID is still used" in intruder.errors[0]
    for client in (intruder, returned, two):
        assert not client.lost
        client.consumer.close()


def test_admin_client_lists_topics_and_groups(server: MusterServer) -> None:
    """librdkafka's request for all topics has bytes behind it that belong to nothing."""
    admin = AdminClient({"bootstrap.servers": server.kafka})
    topics = admin.list_topics(timeout=WITHIN_S).topics
    counts = {name: len(topic.partitions) for name, topic in topics.items()}
    assert counts == {"orders": PARTITIONS, "payments": PARTITIONS}
    listed = admin.list_consumer_groups(request_timeout=WITHIN_S).result()
    assert listed.errors == []
