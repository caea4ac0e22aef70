"""Real members for the console's tests: librdkafka consumers, and members of the SDK."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, Self

import muster

POLL_S = 0.1
JOIN_S = 30.0


class Crew:
    """Members in threads; all of them leave at the end."""

    def __init__(self, kafka: str, grpc: str) -> None:
        self._kafka = kafka
        self._grpc = grpc
        self._members: dict[str, tuple[threading.Thread, threading.Event]] = {}

    def produce(self, topic: str, count: int) -> None:
        """Write records, so that there is lag."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._kafka})
        for number in range(count):
            producer.produce(topic, f"record {number}", key=str(number))
        assert producer.flush(JOIN_S) == 0

    def join(self, name: str, group_id: str, topic: str, **options: Any) -> None:
        """A consumer of the consumer protocol with the client id ``name``, which commits."""
        self._start(name, self._consume, name, group_id, topic, options)

    def join_by_sdk(self, name: str, group_id: str, topic: str) -> None:
        """A member over gRPC."""
        self._start(name, self._run_member, group_id, topic, name)

    def leave(self, name: str) -> None:
        """End a member, and wait until it has left."""
        thread, stop = self._members.pop(name)
        stop.set()
        thread.join(JOIN_S)
        assert not thread.is_alive()

    def _start(self, name: str, run: Any, *arguments: Any) -> None:
        stop = threading.Event()
        thread = threading.Thread(target=run, args=(stop, *arguments), daemon=True)
        self._members[name] = thread, stop
        thread.start()

    def _consume(
        self,
        stop: threading.Event,
        name: str,
        group_id: str,
        topic: str,
        options: dict[str, Any],
    ) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self._kafka,
                "group.id": group_id,
                "client.id": name,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                **{key.replace("_", "."): value for key, value in options.items()},
            }
        )
        consumer.subscribe([topic])
        while not stop.is_set():
            consumer.poll(POLL_S)
        consumer.close()

    def _run_member(self, stop: threading.Event, group_id: str, topic: str, name: str) -> None:
        async def run() -> None:
            async with muster.Member(
                self._grpc, group_id, topics=[topic], client_id=name
            ) as member:
                while not stop.is_set():
                    member.poll()
                    await asyncio.sleep(POLL_S)

        asyncio.run(run())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _, stop in self._members.values():
            stop.set()
        for name in list(self._members):
            self.leave(name)
