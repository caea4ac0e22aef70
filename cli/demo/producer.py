"""A small producer: some records per second over all partitions, through the Kafka protocol."""

from __future__ import annotations

import threading

from confluent_kafka import KafkaError, Message, Producer

RECORDS_PER_SECOND = 200
_ROUND_S = 0.05
_FLUSH_S = 10.0


class TrickleProducer:
    """Produces in a thread. ``end_offsets`` follow the acknowledgements of each partition."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "producer",
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-producer", daemon=True)
        self.end_offsets: dict[int, int] = {}
        self.acknowledged = 0
        self.failed = 0

    def start(self) -> None:
        """Start producing."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for records in flight."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_FLUSH_S + 1)

    def _run(self) -> None:
        number = 0
        while not self._stopping.wait(_ROUND_S):
            for _ in range(int(RECORDS_PER_SECOND * _ROUND_S)):
                number += 1
                try:
                    self._producer.produce(
                        self._topic,
                        f"record {number}".encode(),
                        partition=number % self._partitions,
                        on_delivery=self._on_delivery,
                    )
                except BufferError:
                    # The queue is full because the server has been down: drain it first.
                    break
            self._producer.poll(0)
        self._producer.flush(_FLUSH_S)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self.failed += 1
            return
        self.acknowledged += 1
        self.end_offsets[partition] = max(self.end_offsets.get(partition, 0), offset + 1)
