"""A consumer of the demo: plain confluent-kafka with `group.protocol=consumer`, in a process.

    python -m cli.demo.kafka_worker NAME BOOTSTRAP GROUP TOPIC

It reads records, commits what it has read, records what it owns, and leaves on SIGTERM.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from cli.demo.events import Kind, Recorder

POLL_S = 0.05
COMMIT_INTERVAL_S = 0.1


class Worker:
    """Reads, commits and records events."""

    def __init__(
        self, name: str, bootstrap: str, group: str, topic: str, protocol: str = "consumer"
    ) -> None:
        self._topic = topic
        self._recorder = Recorder(name)
        self._next_offsets: dict[int, int] = {}
        self._is_stopping = False
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                # The demo kills the server; librdkafka would log that to standard error.
                "log_level": 0,
            }
        )

    def stop(self, *_: object) -> None:
        """Leave after the current round."""
        self._is_stopping = True

    def run(self) -> None:
        """Run until ``stop``."""
        self._recorder.record(Kind.JOINING)
        self._consumer.subscribe(
            [self._topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )
        commit_at_s = 0.0
        while not self._is_stopping:
            self._read()
            if time.monotonic() >= commit_at_s:
                self._commit(list(self._next_offsets))
                commit_at_s = time.monotonic() + COMMIT_INTERVAL_S
        self._consumer.close()
        self._recorder.record(Kind.LEFT)

    def _read(self) -> None:
        for message in self._consumer.consume(500, POLL_S):
            self._note(message)

    def _note(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            self._recorder.record(Kind.FAILED, detail=str(error))
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self._next_offsets[partition] = offset + 1

    def _commit(self, partitions: Sequence[int]) -> None:
        """Commit what was read from these partitions since the last commit, and wait."""
        offsets = {
            partition: self._next_offsets.pop(partition)
            for partition in partitions
            if partition in self._next_offsets
        }
        if not offsets:
            return
        wanted = [TopicPartition(self._topic, number, at) for number, at in offsets.items()]
        try:
            results = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            self._recorder.record(Kind.FAILED, detail=str(error))
            # Retry with the next commit.
            self._next_offsets = offsets | self._next_offsets
            return
        kept = {entry.partition: entry.offset for entry in results or [] if entry.error is None}
        self._recorder.record(Kind.COMMITTED, offsets=kept)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._recorder.record(Kind.ASSIGNED, [entry.partition for entry in partitions])

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        revoked = [entry.partition for entry in partitions]
        self._commit(revoked)
        self._forget(revoked)
        self._recorder.record(Kind.REVOKED, revoked)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        lost = [entry.partition for entry in partitions]
        self._forget(lost)
        self._recorder.record(Kind.LOST, lost)

    def _forget(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self._next_offsets.pop(partition, None)


def main(name: str, bootstrap: str, group: str, topic: str) -> None:
    worker = Worker(name, bootstrap, group, topic)
    signal.signal(signal.SIGTERM, worker.stop)
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
