"""Numbered records at a steady rate."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

_TICK_S: Final = 0.1
_FLUSH_S: Final = 60.0
_UNKNOWN: Final = (
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
"""A broker that has just come back does not know its topics yet: such records are not produced."""


class Traffic:
    """A producer in a thread of its own; leaving the block ends it. `produced` is how many records
    each partition has that were acknowledged."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, per_s: int = 400) -> None:
        self.produced = {f"{topic}-{number}": 0 for number in range(partitions)}
        self.failures: list[str] = []
        self._topic = topic
        self._each_tick = round(per_s * _TICK_S)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "topic.metadata.refresh.interval.ms": 1_000,
                "log_level": 0,
            }
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it; returns when all is acknowledged. Safe to call twice."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        number, due = 0, time.monotonic()
        while not self._ending.is_set():
            for _ in range(self._each_tick):
                self._produce(number)
                number += 1
            self._producer.poll(0)
            due += _TICK_S
            self._ending.wait(max(0.0, due - time.monotonic()))
        if self._producer.flush(_FLUSH_S):
            self.failures.append("not all was produced in time")

    def _produce(self, number: int) -> None:
        partition = number % len(self.produced)
        try:
            self._producer.produce(
                self._topic, str(number), partition=partition, on_delivery=self._note
            )
        except KafkaException as error:
            if error.args[0].code() not in _UNKNOWN:
                raise

    def _note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            if error.code() not in _UNKNOWN:
                self.failures.append(str(error))
            return
        name = f"{message.topic()}-{message.partition()}"
        self.produced[name] = max(self.produced[name], (message.offset() or 0) + 1)
