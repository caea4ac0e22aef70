"""A gRPC member of the demo: `muster.Member` assigns the partitions and commits the offsets.

    python -m cli.demo.grpc_worker NAME GRPC BOOTSTRAP GROUP TOPIC

It reads the records through the Kafka protocol with a consumer that is in no group: an SDK member
may share out partitions of anything. It commits what it has read, records what it owns, and leaves
on SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition

import muster
from cli.demo.events import Kind, Recorder
from muster import TopicPartition

ROUND_S = 0.1
POLL_S = 0.05


class Worker:
    """Reads, commits and records events."""

    def __init__(self, name: str, target: str, bootstrap: str, group: str, topic: str) -> None:
        self._topic = topic
        self._recorder = Recorder(name)
        self._next_offsets: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._stopping = asyncio.Event()
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": f"{name}-reads-alone", "log_level": 0}
        )
        self._member = muster.Member(
            target,
            group,
            topics=[topic],
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
            on_lost=self._on_lost,
            client_id=name,
        )

    def stop(self) -> None:
        """Leave after the current round."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until ``stop``."""
        self._recorder.record(Kind.JOINING)
        async with self._member as member:
            while not self._stopping.is_set():
                assignment = member.poll()
                if assignment != self._next_offsets.keys():
                    await self._follow(assignment)
                await self._read()
                await self._commit(self._next_offsets)
                await self._pause()
        self._consumer.close()
        self._recorder.record(Kind.LEFT)

    async def _follow(self, assignment: frozenset[TopicPartition]) -> None:
        """Start new partitions at their committed offsets; drop revoked ones."""
        new = assignment - self._next_offsets.keys()
        try:
            found = await self._member.fetch_offsets(new) if new else {}
        except (muster.MusterError, TimeoutError) as error:
            self._recorder.record(Kind.FAILED, detail=str(error))
            return
        for partition in self._next_offsets.keys() - assignment:
            del self._next_offsets[partition]
        for partition, committed in found.items():
            self._next_offsets[partition] = 0 if committed is None else committed.offset
        self._committed = dict(self._next_offsets)
        self._consumer.assign(
            [KafkaPartition(*partition, at) for partition, at in self._next_offsets.items()]
        )

    async def _read(self) -> None:
        for message in await asyncio.to_thread(self._consumer.consume, 500, POLL_S):
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition is not None and offset is not None:
                owned = TopicPartition(self._topic, partition)
                if owned in self._next_offsets:
                    self._next_offsets[owned] = offset + 1

    async def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        changed = {
            partition: offset
            for partition, offset in offsets.items()
            if self._committed.get(partition) != offset
        }
        if not changed:
            return
        try:
            await self._member.commit(changed)
        except (muster.MusterError, TimeoutError) as error:
            self._recorder.record(Kind.FAILED, detail=str(error))
            return
        self._committed.update(changed)
        self._recorder.record(
            Kind.COMMITTED,
            offsets={partition.partition: offset for partition, offset in changed.items()},
        )

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(ROUND_S):
                await self._stopping.wait()
        except TimeoutError:
            pass

    def _on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._recorder.record(Kind.ASSIGNED, _numbers(partitions))

    async def _on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        read = {part: at for part, at in self._next_offsets.items() if part in partitions}
        await self._commit(read)
        self._forget(partitions)
        self._recorder.record(Kind.REVOKED, _numbers(partitions))

    def _on_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._forget(partitions)
        self._recorder.record(Kind.LOST, _numbers(partitions))

    def _forget(self, partitions: frozenset[TopicPartition]) -> None:
        for partition in partitions:
            self._next_offsets.pop(partition, None)


def _numbers(partitions: frozenset[TopicPartition]) -> list[int]:
    return [partition.partition for partition in partitions]


async def run(*arguments: str) -> None:
    worker = Worker(*arguments)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
