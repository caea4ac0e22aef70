"""Members over gRPC, with the SDK; what they own they read by a consumer that is in no group."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition

import muster
from muster import TopicPartition
from tests.migration.hosts.aio_host import host_tasks
from tests.migration.hosts.host import Member, Options


class Reader:
    """Reads what its member owns, and commits what was read before that is given up."""

    def __init__(self, options: Options, member: Member) -> None:
        self._poll_ms = options.poll_ms
        self._said = member
        self._next: dict[TopicPartition, int] = {}
        self._consumer = AIOKafkaConsumer(bootstrap_servers=options.bootstrap)
        self._member = muster.Member(
            options.grpc,
            options.group,
            topics=[options.topic],
            on_assigned=lambda partitions: member.print_partitions("assigned", partitions),
            on_revoked=self._on_revoked,
            on_lost=self._on_lost,
            client_id=member.name,
        )

    async def run(self) -> None:
        """Until the member is to close."""
        await self._consumer.start()
        try:
            async with self._member as member:
                while not self._said.closing.is_set():
                    assignment = member.poll()
                    if assignment != self._next.keys():
                        await self._follow(assignment)
                    await self._read()
        finally:
            await self._consumer.stop()

    async def _follow(self, assignment: frozenset[TopicPartition]) -> None:
        """Begin with new partitions where the group has got to; drop those that are gone."""
        new = assignment - self._next.keys()
        try:
            found = await self._member.fetch_offsets(new) if new else {}
        except (muster.MusterError, TimeoutError):
            return
        owned = self._member.poll()
        self._next |= {
            partition: 0 if committed is None else committed.offset
            for partition, committed in found.items()
            if partition in owned
        }
        self._assign()

    def _assign(self) -> None:
        asked = {KafkaPartition(*partition): offset for partition, offset in self._next.items()}
        self._consumer.assign(list(asked))
        for partition, offset in asked.items():
            self._consumer.seek(partition, offset)

    async def _read(self) -> None:
        if not self._next:
            await asyncio.sleep(self._poll_ms / 1_000)
            return
        found = await self._consumer.getmany(timeout_ms=self._poll_ms)
        owned = {
            partition: records
            for partition, records in found.items()
            if TopicPartition(*partition) in self._next and records
        }
        self._said.print_found(owned)
        for partition, records in owned.items():
            self._next[TopicPartition(*partition)] = records[-1].offset + 1

    async def _on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        read = {partition: at for partition, at in self._next.items() if partition in partitions}
        self._forget(partitions)
        if read:
            await self._member.commit(read)
        self._said.print_partitions("revoked", partitions)

    def _on_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._forget(partitions)
        self._said.print_partitions("lost", partitions)

    def _forget(self, partitions: frozenset[TopicPartition]) -> None:
        for partition in partitions:
            self._next.pop(partition, None)
        if self._next:
            self._assign()


async def run(options: Options, member: Member) -> None:
    await Reader(options, member).run()


if __name__ == "__main__":
    host_tasks(run)
