"""Members with kafka-python's KafkaConsumer, of the classic protocol."""

from __future__ import annotations

from collections.abc import Iterable

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from tests.migration.hosts.host import Member, Options, host_threads


class Listener(ConsumerRebalanceListener):
    """Tells what is assigned and what is taken away."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Iterable[object]) -> None:
        self._member.print_partitions("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[object]) -> None:
        self._member.print_partitions("revoked", revoked)

    def on_partitions_lost(self, lost: Iterable[object]) -> None:
        self._member.print_partitions("lost", lost)


def run(options: Options, member: Member) -> None:
    """Poll until the member is to close."""
    consumer = KafkaConsumer(
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=member.name,
        partition_assignment_strategy=[RangePartitionAssignor],
        auto_offset_reset="earliest",
        auto_commit_interval_ms=options.commit_ms,
        reconnect_backoff_max_ms=1_000,
    )
    # Where its first metadata comes in the middle of a rebalance, kafka-python 3.0.12 begins
    # another one and loops for ever without joining.
    consumer.partitions_for_topic(options.topic)
    consumer.subscribe([options.topic], listener=Listener(member))
    while not member.closing.is_set():
        member.print_found(consumer.poll(timeout_ms=options.poll_ms))
    consumer.close()


if __name__ == "__main__":
    host_threads(run)
