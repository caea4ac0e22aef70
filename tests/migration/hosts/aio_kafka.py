"""Members with aiokafka's AIOKafkaConsumer, of the classic protocol."""

from __future__ import annotations

from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from tests.migration.hosts.aio_host import host_tasks
from tests.migration.hosts.host import Member, Options


class Listener(ConsumerRebalanceListener):
    """Tells what is assigned and what is taken away."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.is_working = True

    async def on_partitions_assigned(self, assigned: Iterable[object]) -> None:
        if self.is_working:
            self._member.print_partitions("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Iterable[object]) -> None:
        self._member.print_partitions("revoked", revoked)


async def run(options: Options, member: Member) -> None:
    """Poll until the member is to close."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=member.name,
        partition_assignment_strategy=[RangePartitionAssignor],
        auto_offset_reset="earliest",
        auto_commit_interval_ms=options.commit_ms,
    )
    listener = Listener(member)
    consumer.subscribe([options.topic], listener=listener)
    await consumer.start()
    try:
        while not member.closing.is_set():
            member.print_found(await consumer.getmany(timeout_ms=options.poll_ms))
    finally:
        # From here on nothing is processed. Stopping tells of nothing that is given up, and may
        # tell of what a rebalance gives that is under way.
        listener.is_working = False
        member.print_partitions("revoked", consumer.assignment())
        await consumer.stop()


if __name__ == "__main__":
    host_tasks(run)
