"""A member with confluent-kafka's Consumer, which polls until it is told to close."""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.interop.python.program import (
    Options,
    Printer,
    compute_name,
    read_commands,
    read_options,
    take,
)
from tests.interop.security import compute_librdkafka_settings

WITHIN_S = 30.0


def make_consumer(options: Options, printer: Printer) -> Consumer:
    of_protocol: dict[str, object] = {}
    if options.assignor:
        of_protocol = {"group.remote.assignor": options.assignor}
    if options.protocol == "classic":
        of_protocol = {
            "session.timeout.ms": options.session_ms,
            "heartbeat.interval.ms": options.heartbeat_ms,
            "partition.assignment.strategy": ",".join(options.strategies),
        }
    return Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "group.protocol": options.protocol,
            "client.id": options.client_id,
            "group.instance.id": options.instance_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 1_000,
            "error_cb": lambda error: printer.print("complained", message=str(error)),
            **of_protocol,
            **compute_librdkafka_settings(options.security),
        }
    )


def poll(consumer: Consumer, printer: Printer) -> None:
    """Polls once, and commits at once what was read."""
    offsets: dict[str, list[int]] = {}
    for message in consumer.consume(num_messages=500, timeout=0.1):
        if (error := message.error()) is not None:
            printer.print("complained", message=str(error))
            continue
        offset = message.offset()
        name = compute_name(TopicPartition(message.topic() or "", message.partition() or 0))
        offsets.setdefault(name, []).append(offset if offset is not None else -1)
    if not offsets:
        return
    printer.print_records(offsets)
    try:
        consumer.commit(asynchronous=False)
        printer.print("committed")
    except KafkaException as error:
        printer.print_error("commit-failed", error)


def main() -> int:
    options, printer, commands = read_options(), Printer(), read_commands()
    consumer = make_consumer(options, printer)
    consumer.subscribe(
        options.topics,
        on_assign=lambda _, changed: printer.print_partitions("assigned", changed),
        on_revoke=lambda _, changed: printer.print_partitions("revoked", changed),
        on_lost=lambda _, changed: printer.print_partitions("lost", changed),
    )
    printer.print("started")
    while (command := take(commands)) != "close":
        if command == "committed":
            found = consumer.committed(consumer.assignment(), WITHIN_S)
            printer.print("fetched", offsets={compute_name(each): each.offset for each in found})
        poll(consumer, printer)
    consumer.close()
    printer.print("closed", total=printer.total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
