"""A member with kafka-python's KafkaConsumer, which polls until it is told to close."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

from tests.interop.python.program import (
    Options,
    Printer,
    compute_name,
    read_commands,
    read_options,
    take,
)

STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Listener(ConsumerRebalanceListener):
    """Tells what is assigned and what is taken away."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer

    def on_partitions_assigned(self, assigned: Iterable[object]) -> None:
        self._printer.print_partitions("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[object]) -> None:
        self._printer.print_partitions("revoked", revoked)

    def on_partitions_lost(self, lost: Iterable[object]) -> None:
        self._printer.print_partitions("lost", lost)


def make_consumer(options: Options) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=options.client_id,
        group_instance_id=options.instance_id or None,
        session_timeout_ms=options.session_ms,
        heartbeat_interval_ms=options.heartbeat_ms,
        partition_assignment_strategy=[STRATEGIES[name] for name in options.strategies],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        reconnect_backoff_max_ms=1_000,
    )


def poll(consumer: KafkaConsumer, printer: Printer) -> None:
    """Polls once, and commits at once what was read."""
    found = consumer.poll(timeout_ms=100)
    if not found:
        return
    printer.print_found(found)
    try:
        consumer.commit()
        printer.print("committed")
    except KafkaError as error:
        printer.print_error("commit-failed", error)


def main() -> int:
    options, printer, commands = read_options(), Printer(), read_commands()
    consumer = make_consumer(options)
    for topic in options.topics:
        # Where its first metadata comes in the middle of a rebalance, kafka-python 3.0.12 begins
        # another one and loops for ever without joining.
        consumer.partitions_for_topic(topic)
    consumer.subscribe(options.topics, listener=Listener(printer))
    printer.print("started")
    while (command := take(commands)) != "close":
        if command == "committed":
            held = consumer.assignment()
            offsets = {compute_name(each): consumer.committed(each) for each in held}
            printer.print("fetched", offsets=offsets)
        try:
            poll(consumer, printer)
        except KafkaError as error:
            printer.print_error("failed", error)
            consumer.close()
            return 1
    consumer.close()
    printer.print("closed", total=printer.total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
