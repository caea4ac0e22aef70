"""Consumers of confluent-kafka in threads of their own: those that stay and those that go.

``python -m tests.soak.load.consumers BOOTSTRAP GROUP`` is one that says ``joined`` and goes on
until it is killed.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer

from tests.groups import CHECKOUT
from tests.soak.load.wire import SESSION_MS, TOPIC

JOINED_WITHIN_S: Final = 40.0
_POLL_S: Final = 0.5
_CLASSIC: Final = {
    "session.timeout.ms": SESSION_MS,
    "heartbeat.interval.ms": 1_000,
    "partition.assignment.strategy": "cooperative-sticky",
}


def make_consumer(
    bootstrap: str, group: str, name: str, *, is_classic: bool, topics: Sequence[str] = (TOPIC,)
) -> Consumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "client.id": name,
        "group.protocol": "classic" if is_classic else "consumer",
        "enable.auto.commit": False,
        "auto.offset.reset": "latest",
        "log_level": 0,
    }
    quiet = logging.Logger(name, logging.CRITICAL)
    made = Consumer({**settings, **(_CLASSIC if is_classic else {})}, logger=quiet)
    made.subscribe(list(topics))
    return made


def commit(consumer: Consumer) -> None:
    """Commit where it is, of what it holds; a rebalance may be in its way."""
    try:
        held = consumer.position(consumer.assignment())
        for partition in held:
            partition.offset = max(partition.offset, 0)
        if held:
            consumer.commit(offsets=held, asynchronous=True)
    except KafkaException:
        pass


class CachedHeartbeat:
    """Consumers that stay and merely poll, with a commit now and then, and a producer for them."""

    def __init__(self, bootstrap: str, count: int) -> None:
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._poll, args=(bootstrap, number), daemon=True)
            for number in range(count)
        ]
        self._threads.append(threading.Thread(target=self._produce, args=(bootstrap,), daemon=True))
        for thread in self._threads:
            thread.start()

    def _poll(self, bootstrap: str, number: int) -> None:
        is_classic = number % 2 == 1
        group = "steady-classic" if is_classic else "steady-consumer"
        consumer = make_consumer(bootstrap, group, f"steady-{number}", is_classic=is_classic)
        committed_at = time.monotonic()
        while not self._ending.is_set():
            consumer.poll(_POLL_S)
            if time.monotonic() - committed_at > 1.0:
                committed_at = time.monotonic()
                commit(consumer)
        consumer.close()

    def _produce(self, bootstrap: str) -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 50})
        while not self._ending.wait(0.1):
            for _ in range(10):
                producer.produce(TOPIC, b"v" * 500)
            producer.poll(0)
        producer.flush(10)

    def end(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(30)


async def consumer(bootstrap: str, name: str, *, is_classic: bool) -> None:
    """One that joins, reads, commits and closes."""
    await asyncio.to_thread(_come_and_go, bootstrap, name, is_classic)


def _come_and_go(bootstrap: str, name: str, is_classic: bool) -> None:
    topics = [f"^({TOPIC}|soaked-{name}.*)"] if len(name) % 2 else [TOPIC]
    made = make_consumer(bootstrap, name, name, is_classic=is_classic, topics=topics)
    deadline = time.monotonic() + JOINED_WITHIN_S
    while not made.assignment() and time.monotonic() < deadline:
        made.poll(0.05)
    for _ in range(5):
        made.poll(0.1)
        commit(made)
    made.close()


async def killed_consumer(bootstrap: str, name: str) -> None:
    """A process whose consumer has joined, and that is killed."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.soak.load.consumers", bootstrap, name),
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
    )
    assert program.stdout is not None
    try:
        async with asyncio.timeout(JOINED_WITHIN_S):
            await program.stdout.readline()
    finally:
        program.kill()
        await program.wait()


def main() -> None:
    bootstrap, group = sys.argv[1:]
    made = make_consumer(bootstrap, group, group, is_classic=False)
    is_joined = False
    while True:
        made.poll(0.1)
        if made.assignment() and not is_joined:
            is_joined = True
            print("joined", flush=True)


if __name__ == "__main__":
    main()
