"""confluent-kafka (librdkafka) with ``group.protocol=consumer``, unmodified, on our wire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.server import MusterServer

PARTITIONS = 4
RECORDS = 40
WITHIN_S = 30.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": PARTITIONS}) as running:
        yield running


class Client:
    """A consumer, what it holds by its own callbacks, what it has read."""

    def __init__(self, server: MusterServer, client_id: str) -> None:
        self.held: set[int] = set()
        self.values: list[int] = []
        self.lost: list[int] = []
        self.errors: list[str] = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": server.kafka,
                "group.id": "confluent",
                "group.protocol": "consumer",
                "client.id": client_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "error_cb": lambda error: self.errors.append(str(error)),
            }
        )
        self.consumer.subscribe(
            ["orders"],
            on_assign=lambda _, partitions: self.held.update(p.partition for p in partitions),
            on_revoke=lambda _, partitions: self.held.difference_update(
                p.partition for p in partitions
            ),
            on_lost=lambda _, partitions: self.lost.extend(p.partition for p in partitions),
        )

    def poll(self) -> None:
        message = self.consumer.poll(0.02)
        if message is not None and message.error() is None:
            self.values.append(int(message.value()))
            self.consumer.commit(message=message, asynchronous=False)


def poll_until(clients: list[Client], condition: Callable[[], bool], what: str) -> float:
    """Poll the clients in turn until the condition holds; how long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < WITHIN_S, f"not in time: {what}"
        for client in clients:
            client.poll()
    return time.monotonic() - began


def produce(server: MusterServer, values: range) -> None:
    failures: list[Any] = []
    producer = Producer({"bootstrap.servers": server.kafka, "enable.idempotence": True})
    for value in values:
        producer.produce(
            "orders",
            str(value),
            partition=value % PARTITIONS,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(WITHIN_S) == 0
    assert not failures


@pytest.mark.timeout(120)
def test_consumers_share_partitions_commit_and_survive_a_restart(server: MusterServer) -> None:
    everything = set(range(PARTITIONS))
    produce(server, range(RECORDS))
    one = Client(server, "one")
    poll_until([one], lambda: len(one.values) == RECORDS, "one reads all")
    assert one.held == everything
    two = Client(server, "two")
    both = [one, two]
    poll_until(both, lambda: len(two.held) == 2 and len(one.held) == 2, "they share")
    assert one.held | two.held == everything

    server.kill()
    server.start()
    produce(server, range(RECORDS, RECORDS + PARTITIONS))
    poll_until(
        both, lambda: len(one.values) + len(two.values) == RECORDS + PARTITIONS, "they go on"
    )
    assert sorted(one.values + two.values) == list(range(RECORDS + PARTITIONS))
    assert not one.lost
    assert not two.lost

    one.consumer.close()
    poll_until([two], lambda: two.held == everything, "two takes over")
    stored = two.consumer.committed([TopicPartition("orders", n) for n in everything], WITHIN_S)
    assert [found.offset for found in stored] == [RECORDS // PARTITIONS + 1] * PARTITIONS
    two.consumer.close()


def test_admin_client_lists_topics_and_groups(server: MusterServer) -> None:
    """librdkafka's request for all topics has bytes behind it that belong to nothing."""
    admin = AdminClient({"bootstrap.servers": server.kafka})
    topics = admin.list_topics(timeout=WITHIN_S).topics
    assert {name: len(topic.partitions) for name, topic in topics.items()} == {"orders": PARTITIONS}
    listed = admin.list_consumer_groups(request_timeout=WITHIN_S).result()
    assert listed.errors == []
