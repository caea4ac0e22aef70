"""A consumer of confluent-kafka (librdkafka) with ``group.protocol=consumer``, and what it saw."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.server import MusterServer

WITHIN_S = 90.0


class Served(Protocol):
    """A server of the Kafka wire; ``kafka`` is HOST:PORT."""

    @property
    def kafka(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Address:
    """HOST:PORT of a server of the Kafka wire."""

    kafka: str


class ConfluentClient:
    """A consumer: what it holds by its own callbacks, what it has read, and its complaints.

    `held` and `lost` are names such as orders-0; `errors` are those of its error callback, `log`
    the lines that librdkafka logs.
    """

    def __init__(
        self,
        server: MusterServer,
        client_id: str,
        *,
        group: str = "confluent",
        topics: Sequence[str] = ("orders",),
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.held: set[str] = set()
        self.values: list[int] = []
        self.lost: list[str] = []
        self.errors: list[str] = []
        self.log: list[str] = []
        self.commit_times_s: list[float] = []
        self._topics = list(topics)
        self.consumer = Consumer(
            {
                "bootstrap.servers": server.kafka,
                "group.id": group,
                "group.protocol": "consumer",
                "client.id": client_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "error_cb": lambda error: self.errors.append(str(error)),
                **(settings or {}),
            },
            logger=keep_lines(client_id, self.log),
        )
        self.subscribe()

    def __str__(self) -> str:
        return f"it holds {self.held}, with {self.errors}, {self.log[-5:]}"

    def subscribe(self) -> None:
        self.consumer.subscribe(
            self._topics,
            on_assign=lambda _, changed: self.held.update(compute_names(changed)),
            on_revoke=lambda _, changed: self.held.difference_update(compute_names(changed)),
            on_lost=lambda _, changed: self.lost.extend(compute_names(changed)),
        )

    def poll(self, wait_s: float = 0.02) -> None:
        """Poll once, and commit at once what was read."""
        message = self.consumer.poll(wait_s)
        if message is None:
            return
        if message.error() is None:
            value = message.value()
            assert value is not None
            self.values.append(int(value))
            began = time.monotonic()
            self.consumer.commit(message=message, asynchronous=False)
            self.commit_times_s.append(time.monotonic() - began)
        else:
            self.errors.append(str(message.error()))

    def committed(self, topic: str, partitions: int) -> list[int]:
        """The committed offset of each partition of a topic."""
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return [found.offset for found in self.consumer.committed(asked, WITHIN_S)]


def keep_lines(name: str, lines: list[str]) -> logging.Logger:
    """A logger of its own that only adds what it is given to `lines`."""
    logger = logging.Logger(name)
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    return logger


def compute_names(partitions: Iterable[TopicPartition]) -> set[str]:
    return {f"{found.topic}-{found.partition}" for found in partitions}


def produce(server: Served, values: range, topic: str = "orders", partitions: int = 4) -> None:
    """Produce each value to the partition of its remainder, idempotently."""
    failures: list[Any] = []
    producer = Producer({"bootstrap.servers": server.kafka, "enable.idempotence": True})
    for value in values:
        producer.produce(
            topic,
            str(value),
            partition=value % partitions,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(WITHIN_S) == 0
    assert not failures


def make_topic(server: Served, name: str, partitions: int = 4) -> None:
    admin = AdminClient({"bootstrap.servers": server.kafka})
    made = admin.create_topics([NewTopic(name, partitions, 1)], request_timeout=WITHIN_S)
    made[name].result()
