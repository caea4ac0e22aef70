"""An unmodified librdkafka produces to, reads and manages topics that are kept here."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory import MemoryLogStore
from tests.support.waiting import wait_until
from tests.unit.gateway.apis.topics_rig import run, run_topics

confluent_kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

DEADLINE_S = 30.0


def produce_all(bootstrap: str, topic: str, values: Iterable[bytes], **settings: Any) -> list[int]:
    """Produce and wait for every acknowledgement; the offsets."""
    offsets: list[int] = []

    def on_delivery(error: Any, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, **settings}
    )
    for value in values:
        producer.produce(topic, value, key=b"k", partition=0, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    return offsets


def consume(bootstrap: str, topic: str, count: int, offset: int = 0) -> list[tuple[int, bytes]]:
    """Assign partition 0 and poll until there are so many records."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    found: list[tuple[int, bytes]] = []

    def poll() -> None:
        message = consumer.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            found.append((message.offset(), message.value()))

    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
        wait_until(
            lambda: len(found) >= count,
            lambda: f"{count} records are read, not {len(found)}",
            DEADLINE_S,
            between=poll,
        )
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_what_is_produced_is_consumed(tmp_path: Path, codec: str) -> None:
    values = [b"%d" % number + b"." * 50 for number in range(2_000)]
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("t")
        settings = {"compression.type": codec, "batch.num.messages": 100, "linger.ms": 2}
        offsets = await run(lambda: produce_all(rig.bootstrap, "t", values, **settings))
        assert offsets == list(range(2_000))
        found = await run(consume, rig.bootstrap, "t", 2_000)
        assert found == list(enumerate(values))
        assert await run(consume, rig.bootstrap, "t", 500, 1_500) == found[1_500:]


async def test_records_survive_the_server(tmp_path: Path) -> None:
    values = [b"%d" % number for number in range(600)]
    log_store = MemoryLogStore(50)
    async with run_topics(tmp_path, log_store=log_store) as rig:
        await rig.create_topic("t")
        await run(produce_all, rig.bootstrap, "t", values[:300])
    async with run_topics(tmp_path, log_store=log_store) as rig:
        offsets = await run(produce_all, rig.bootstrap, "t", values[300:])
        assert offsets == list(range(300, 600))
        assert await run(consume, rig.bootstrap, "t", 600) == list(enumerate(values))


async def test_a_consumer_polls_what_comes(tmp_path: Path) -> None:
    """Records come while the consumer's fetch waits, not at its end."""
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("t")
        found: list[tuple[int, bytes]] = []
        reader = threading.Thread(target=lambda: found.extend(consume(rig.bootstrap, "t", 5)))
        reader.start()
        for number in range(5):
            await run(produce_all, rig.bootstrap, "t", [b"%d" % number])
        await run(reader.join, DEADLINE_S)
        assert found == [(number, b"%d" % number) for number in range(5)]


async def test_offsets_are_found_by_time_and_at_both_ends(tmp_path: Path) -> None:
    start_ms = 1_700_000_000_000

    def ask(bootstrap: str) -> tuple[Any, list[int]]:
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        for number in range(50):
            producer.produce("t", b"v", partition=0, timestamp=start_ms + number * 1_000)
        assert producer.flush(DEADLINE_S) == 0
        consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
        try:
            partition = confluent_kafka.TopicPartition("t", 0)
            ends = consumer.get_watermark_offsets(partition, timeout=DEADLINE_S)
            times = [start_ms, start_ms + 1, start_ms + 49_000, start_ms + 49_001]
            found = []
            for at in times:
                wanted = [confluent_kafka.TopicPartition("t", 0, at)]
                (row,) = consumer.offsets_for_times(wanted, timeout=DEADLINE_S)
                found.append(row.offset)
            return ends, found
        finally:
            consumer.close()

    async with run_topics(tmp_path) as rig:
        await rig.create_topic("t")
        ends, found = await run(ask, rig.bootstrap)
        assert ends == (0, 50)
        assert found == [0, 1, 49, confluent_kafka.OFFSET_END]


async def test_topics_are_managed_with_the_admin_client(tmp_path: Path) -> None:
    def manage(bootstrap: str) -> list[Any]:
        client = admin.AdminClient({"bootstrap.servers": bootstrap})
        done: list[Any] = []
        wanted = admin.NewTopic("made", 3, 1, config={"cleanup.policy": "compact"})
        done.append(outcome(client.create_topics([wanted])))
        done.append(outcome(client.create_topics([wanted])))
        done.append(outcome(client.create_topics([admin.NewTopic("twice", 1, 2)])))
        done.append(len(client.list_topics("made", timeout=DEADLINE_S).topics["made"].partitions))
        done.append(outcome(client.create_partitions([admin.NewPartitions("made", 5)])))
        done.append(len(client.list_topics("made", timeout=DEADLINE_S).topics["made"].partitions))
        done.append(outcome(client.delete_topics(["made"])))
        gone = client.list_topics("made", timeout=DEADLINE_S).topics["made"]
        done.append(gone.error.name())
        return done

    def outcome(futures: dict[str, Any]) -> str:
        (future,) = futures.values()
        error = future.exception(timeout=DEADLINE_S)
        return "done" if error is None else str(error.args[0].name())

    async with run_topics(tmp_path) as rig:
        assert await run(manage, rig.bootstrap) == [
            "done",
            "TOPIC_ALREADY_EXISTS",
            "INVALID_REPLICATION_FACTOR",
            3,
            "done",
            5,
            "done",
            "UNKNOWN_TOPIC_OR_PART",
        ]


async def test_a_record_that_is_too_large_fails_at_once(tmp_path: Path) -> None:
    def ask(bootstrap: str) -> str:
        errors: list[str] = []
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "message.max.bytes": 5_000_000}
        )
        producer.produce(
            "t",
            b"x" * 2_000_000,
            on_delivery=lambda error, _: errors.append(error.name() if error else ""),
        )
        assert producer.flush(DEADLINE_S) == 0
        return errors[0]

    async with run_topics(tmp_path) as rig:
        await rig.create_topic("t")
        assert await run(ask, rig.bootstrap) == "MSG_SIZE_TOO_LARGE"
