"""A consumer of the demo that also records what it reads: plain confluent-kafka.

    python -m cli.demo.upstream.stock_worker NAME BOOTSTRAP GROUP TOPIC PROTOCOL

PROTOCOL is `classic` or `consumer`. It leaves on SIGTERM.
"""

from __future__ import annotations

import signal
import sys
import time

from confluent_kafka import Consumer, TopicPartition

from cli.demo.events import Kind
from cli.demo.kafka_worker import POLL_S, Worker


class StockWorker(Worker):
    """Reads one record at a time, so that it is known what it had read when it lost a partition."""

    def __init__(self, name: str, bootstrap: str, group: str, topic: str, protocol: str) -> None:
        super().__init__(name, bootstrap, group, topic, protocol)
        self._firsts: dict[int, int] = {}
        self._nexts: dict[int, int] = {}

    def _read(self) -> None:
        until_s = time.monotonic() + POLL_S
        while (left_s := until_s - time.monotonic()) > 0:
            message = self._consumer.poll(left_s)
            if message is None:
                break
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition is not None and offset is not None:
                if self._nexts.get(partition, offset) != offset:
                    self._record_reads()
                self._firsts.setdefault(partition, offset)
                self._nexts[partition] = offset + 1
            self._note(message)
        self._record_reads()

    def _record_reads(self) -> None:
        if self._nexts:
            self._recorder.record(Kind.READ, offsets=self._nexts, firsts=self._firsts)
            self._firsts, self._nexts = {}, {}

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._record_reads()
        super()._on_assign(consumer, partitions)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._record_reads()
        super()._on_revoke(consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._record_reads()
        super()._on_lost(consumer, partitions)


def main(*arguments: str) -> None:
    worker = StockWorker(*arguments)
    signal.signal(signal.SIGTERM, worker.stop)
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
