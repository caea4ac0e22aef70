"""Many groups of two librdkafka consumers, of which one leaves again and again."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer

from tests.latency.events import (
    PARTITIONS,
    SHARED_WITHIN_S,
    TAKEN_WITHIN_S,
    WORK_S,
    emit,
    read_arguments,
)

GIVEN_UP = "Timed out ConsumerGroupHeartbeat"


class GivenUp(logging.Handler):
    """Looks for heartbeats that librdkafka gives up."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if GIVEN_UP in message:
            emit("given-up", message=message)


def make_consumer(bootstrap: str, topic: str, group: str, name: str) -> Consumer:
    logger = logging.getLogger(f"{group}-{name}-{time.monotonic_ns()}")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(GivenUp())
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "client.id": name,
        "group.protocol": "consumer",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings, logger=logger)
    consumer.subscribe([topic])
    return consumer


def poll_until(is_done: Callable[[], bool], within_s: float, *consumers: Consumer) -> float | None:
    """Poll until it is so; the seconds, ``None`` where it never was."""
    began = time.monotonic()
    while time.monotonic() - began < within_s:
        for consumer in consumers:
            consumer.poll(0.02)
        if is_done():
            return time.monotonic() - began
    return None


def run_group(bootstrap: str, topic: str, number: int, rounds: int) -> None:
    group, draw = f"latency-{number}", random.Random(number)
    stayer = make_consumer(bootstrap, topic, group, "stays")
    poll_until(lambda: len(stayer.assignment()) == PARTITIONS, SHARED_WITHIN_S, stayer)
    for _ in range(rounds):
        run_round(bootstrap, topic, group, stayer, draw)
    stayer.close()


def run_round(
    bootstrap: str, topic: str, group: str, stayer: Consumer, draw: random.Random
) -> None:
    leaver = make_consumer(bootstrap, topic, group, "leaves")

    def is_shared() -> bool:
        return len(stayer.assignment()) == len(leaver.assignment()) == PARTITIONS // 2

    shared = poll_until(is_shared, SHARED_WITHIN_S, stayer, leaver)
    poll_until(lambda: False, draw.uniform(*WORK_S), stayer, leaver)
    closing = threading.Thread(target=leaver.close)
    closing.start()
    taken = poll_until(lambda: len(stayer.assignment()) == PARTITIONS, TAKEN_WITHIN_S, stayer)
    closing.join()
    if shared is None:
        emit("late")
    elif taken is None:
        emit("lost")
        poll_until(lambda: len(stayer.assignment()) == PARTITIONS, SHARED_WITHIN_S, stayer)
    else:
        emit("taken", share_ms=shared * 1_000, after_ms=taken * 1_000)


def main() -> None:
    given = read_arguments()
    threads = [
        threading.Thread(
            target=run_group, args=(given.bootstrap, given.topic, number, given.rounds)
        )
        for number in range(given.groups)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
