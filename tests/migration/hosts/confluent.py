"""Members with confluent-kafka's Consumer, of either protocol."""

from __future__ import annotations

from confluent_kafka import Consumer

from tests.migration.hosts.host import Member, Options, host_threads


def run(options: Options, member: Member) -> None:
    """Poll until the member is to close."""
    classic: dict[str, object] = {}
    if member.protocol == "classic":
        classic = {"partition.assignment.strategy": "range"}
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "group.protocol": member.protocol,
            "client.id": member.name,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": options.commit_ms,
            "reconnect.backoff.max.ms": 1_000,
            # The server is killed on the way, which is no news for standard error.
            "log_level": 0,
            **classic,
        }
    )
    consumer.subscribe(
        [options.topic],
        on_assign=lambda _, changed: member.print_partitions("assigned", changed),
        on_revoke=lambda _, changed: member.print_partitions("revoked", changed),
        on_lost=lambda _, changed: member.print_partitions("lost", changed),
    )
    while not member.closing.is_set():
        tell(consumer, member, options.poll_ms / 1_000)
    consumer.close()


def tell(consumer: Consumer, member: Member, wait_s: float) -> None:
    """Poll for what there is, and say so."""
    spans: dict[str, tuple[int, int]] = {}
    first = consumer.poll(wait_s)
    if first is None:
        return
    for message in [first, *consumer.consume(500, 0)]:
        offset = message.offset()
        if message.error() is None and offset is not None:
            name = f"{message.topic()}-{message.partition()}"
            spans[name] = (spans.get(name, (offset, offset))[0], offset)
    if spans:
        member.print("records", spans=spans)


if __name__ == "__main__":
    host_threads(run)
