"""The topic store: what is appended can be read, by offset and by timestamp, within bounds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.topics.settings import TopicSettings
from gateway.topics.topic_catalogue import PartitionKey, Read
from model.errors import ErrorCode
from model.ids import TopicId, TopicName
from model.topics import Topic
from storage.codec.batch_encoding import encode_batch, reencode_batch
from storage.codec.batches import Batch, BatchRecord
from tests.support.batches import decode_batches
from tests.support.waiting import until
from tests.unit.gateway.topics.store_rig import (
    KEY,
    NOW_MS,
    ORDERS,
    FakeCoordinator,
    a_batch,
    count_open_files,
    files,
    headers,
    run_store,
    segment_files,
)

NO_SUCH = PartitionKey(TopicId(b"x" * 16), 0)


async def test_appended_records_are_read_at_their_offsets(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        first = store.append(a_batch(b"a", b"b", b"c"))
        second = store.append(a_batch(b"d"))
        assert (first.error, first.base_offset, second.base_offset) == (0, 0, 3)
        assert store.values() == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
        assert store.values(2) == [(2, b"c"), (3, b"d")]
        assert (store.start(), store.end()) == (0, 4)


async def test_stored_batches_are_as_sent_but_for_offset_and_leader_epoch(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.append(a_batch(b"a"))
        sent = a_batch(b"b", b"c")
        store.append(sent)
        stored = store.read(1).records
        assert stored[16:] == sent[16:]
        (header,) = headers(stored)
        assert (header.base_offset, header.leader_epoch) == (1, 0)
        assert list(decode_batches(stored)), "the CRC holds"


async def test_partitions_and_topics_are_apart(tmp_path: Path) -> None:
    other = Topic(TopicName("other"), TopicId(b"other".ljust(16, b"\x02")), 1)
    coordinator = FakeCoordinator(Topic(TopicName("orders"), ORDERS, 2), other)
    async with run_store(tmp_path, coordinator) as store:
        store.append(a_batch(b"a"))
        store.append(a_batch(b"b"), PartitionKey(ORDERS, 1))
        store.append(a_batch(b"c"), PartitionKey(other.topic_id, 0))
        assert store.values() == [(0, b"a")]
        assert store.values(key=PartitionKey(ORDERS, 1)) == [(0, b"b")]
        assert store.values(key=PartitionKey(other.topic_id, 0)) == [(0, b"c")]


async def test_what_does_not_exist_is_refused(tmp_path: Path) -> None:
    beyond = PartitionKey(ORDERS, 4)
    async with run_store(tmp_path) as store:
        assert store.append(a_batch(), NO_SUCH).error == ErrorCode.UNKNOWN_TOPIC_ID
        assert store.append(a_batch(), beyond).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert store.read(0, key=NO_SUCH).error == ErrorCode.UNKNOWN_TOPIC_ID
        assert store.offset(-1, beyond).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not files(tmp_path, "*/4"), "nothing is made for it"


@pytest.mark.parametrize("offset", [-1, 2, 1 << 62])
async def test_reading_outside_of_the_log_is_out_of_range(tmp_path: Path, offset: int) -> None:
    async with run_store(tmp_path) as store:
        store.append(a_batch())
        result = store.read(offset)
        assert (result.error, result.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


async def test_reading_at_the_end_finds_nothing_and_is_no_error(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        assert store.read(0).error == 0
        store.append(a_batch(b"a", b"b"))
        result = store.read(2)
        assert (result.error, result.records, result.high_watermark) == (0, b"", 2)


async def test_a_read_keeps_to_its_bytes_in_whole_batches(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        for _ in range(10):
            store.append(a_batch(b"x" * 100))
        size = len(a_batch(b"x" * 100))
        assert [
            len(store.read(0, limit).records) // size for limit in (3 * size, 4 * size - 1)
        ] == [
            3,
            3,
        ]
        assert [header.base_offset for header in headers(store.read(4, 2 * size).records)] == [4, 5]


async def test_the_first_batch_comes_however_large_and_only_the_first(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        for partition in range(3):
            store.append(a_batch(b"x" * 5_000), PartitionKey(ORDERS, partition))
        reads = [Read(PartitionKey(ORDERS, partition), 0, 10) for partition in range(3)]
        results = store.read_many(reads, max_bytes=10)
        assert [len(result.records) > 5_000 for result in results] == [True, False, False]
        assert [result.high_watermark for result in results] == [1, 1, 1]


async def test_all_partitions_together_keep_to_the_bytes_of_the_request(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        keys = [PartitionKey(ORDERS, partition) for partition in range(4)]
        size = len(a_batch(b"x" * 1_000))
        for key in keys * 2:
            store.append(a_batch(b"x" * 1_000), key)
        results = store.read_many([Read(key, 0, 1 << 20) for key in keys], max_bytes=3 * size)
        assert [len(result.records) // size for result in results] == [2, 1, 0, 0]


async def test_the_server_bounds_a_read_too(tmp_path: Path) -> None:
    async with run_store(tmp_path, fetch_max_bytes=400) as store:
        for _ in range(10):
            store.append(a_batch(b"x" * 100))
        assert len(store.read(0, 1 << 30).records) <= 400


# ------------------------------------------------------------------------------------ timestamps


async def test_an_offset_is_found_by_timestamp(tmp_path: Path) -> None:
    async with run_store(
        tmp_path, gateway_topics_segment_bytes=400, message_max_bytes=400
    ) as store:
        for number in range(20):
            store.append(a_batch(b"a", b"b", timestamp_ms=1_000 + 10 * number))
        assert len(segment_files(tmp_path)) > 3
        for timestamp, expected in ((0, 0), (1_000, 0), (1_001, 2), (1_100, 20), (1_190, 38)):
            found = store.offset(timestamp)
            assert (found.offset, found.leader_epoch) == (expected, 0)
            assert found.timestamp >= timestamp
        none = store.offset(1_191)
        assert (none.error, none.offset, none.timestamp, none.leader_epoch) == (0, -1, -1, -1)


async def test_an_offset_is_found_within_a_batch(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.append(batch_of_times(100, 300, 200, 300))
        assert [store.offset(at).offset for at in (100, 101, 300)] == [0, 1, 1]
        assert (store.offset(-3).offset, store.offset(-3).timestamp) == (1, 300)


async def test_the_first_of_the_largest_timestamps_is_found(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        assert store.offset(-3).offset == -1
        for timestamp in (10, 50, 50, 20):
            store.append(a_batch(timestamp_ms=timestamp))
        assert (store.offset(-3).offset, store.offset(-3).timestamp) == (1, 50)


async def test_special_timestamps_without_tiers(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.append(a_batch(b"a", b"b"))
        found = {timestamp: store.offset(timestamp) for timestamp in range(-7, 0)}
        assert {at: result.offset for at, result in found.items()} == {
            -1: 2,
            -2: 0,
            -3: 0,
            -4: 0,
            -5: -1,
            -6: -1,
            -7: -1,
        }
        assert found[-7].error == ErrorCode.UNSUPPORTED_VERSION
        assert {found[at].error for at in range(-6, 0)} == {0}


# ------------------------------------------------------------------------------------- retention


async def test_old_segments_go_when_a_partition_is_too_large(tmp_path: Path) -> None:
    limits = {
        "gateway_topics_segment_bytes": 1_000,
        "gateway_topics_retention_bytes": 3_000,
        "message_max_bytes": 1_000,
    }
    async with run_store(tmp_path, **limits) as store:
        for number in range(100):
            store.append(a_batch(b"%03d" % number + b"x" * 200))
        size = sum(path.stat().st_size for path in segment_files(tmp_path))
        assert 3_000 <= size + 1_000 <= 5_000
        start = store.start()
        assert 80 < start < 99
        assert store.end() == 100
        assert [value[:3] for _, value in store.values(start) if value] == [
            b"%03d" % number for number in range(start, 100)
        ]
        assert store.read(start - 1).error == ErrorCode.OFFSET_OUT_OF_RANGE
    async with run_store(tmp_path, **limits) as store:
        assert (store.start(), store.end()) == (start, 100)


async def test_all_partitions_together_are_bounded(tmp_path: Path) -> None:
    """The segments written to the longest ago go, even a partition's only one."""
    coordinator = FakeCoordinator(Topic(TopicName("orders"), ORDERS, 50))
    async with run_store(tmp_path, coordinator, gateway_topics_total_bytes=10_000) as store:
        for partition in range(50):
            store.append(a_batch(b"x" * 1_000), PartitionKey(ORDERS, partition))
        kept = [p for p in range(50) if store.read(0, key=PartitionKey(ORDERS, p)).records]
        assert kept == list(range(41, 50))
        emptied = PartitionKey(ORDERS, 3)
        assert (store.start(emptied), store.end(emptied)) == (1, 1)
        assert store.append(a_batch(), emptied).base_offset == 1
    total = sum(path.stat().st_size for path in files(tmp_path, "**/*.log"))
    assert total <= 10_000


async def test_the_bound_holds_for_what_was_there_before_a_restart(tmp_path: Path) -> None:
    coordinator = FakeCoordinator(Topic(TopicName("orders"), ORDERS, 50))
    async with run_store(tmp_path, coordinator) as store:
        for partition in range(50):
            store.append(a_batch(b"x" * 1_000), PartitionKey(ORDERS, partition))
    async with run_store(tmp_path, coordinator, gateway_topics_total_bytes=10_000) as store:
        store.append(a_batch(b"x" * 1_000), PartitionKey(ORDERS, 0))
        kept = [p for p in range(50) if store.start(PartitionKey(ORDERS, p)) == 0]
        assert len(kept) == 8
        assert 0 in kept
        assert store.end(PartitionKey(ORDERS, 0)) == 2


async def test_files_held_open_are_bounded(tmp_path: Path) -> None:
    coordinator = FakeCoordinator(Topic(TopicName("orders"), ORDERS, 500))
    before = count_open_files()
    async with run_store(tmp_path, coordinator, gateway_topics_open_files=8) as store:
        for partition in range(500):
            store.append(a_batch(b"%d" % partition), PartitionKey(ORDERS, partition))
        assert count_open_files() <= before + 12
        for partition in range(500):
            key = PartitionKey(ORDERS, partition)
            assert store.values(key=key) == [(0, b"%d" % partition)]


async def test_a_full_disk_is_said_and_leaves_the_coordinator_its_room(tmp_path: Path) -> None:
    async with run_store(tmp_path, log_min_free_bytes=1 << 60) as store:
        result = store.append(a_batch())
        assert result.error == ErrorCode.KAFKA_STORAGE_ERROR
        assert "log.min.free.bytes" in (result.message or "")
        assert store.end() == 0


# ---------------------------------------------------------------------------------------- topics


async def test_a_deleted_topic_takes_its_records_along(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.append(a_batch())
        store.coordinator.delete("orders")
        assert store.append(a_batch()).error == ErrorCode.UNKNOWN_TOPIC_ID
        again = TopicId(b"again".ljust(16, b"\x01"))
        store.coordinator.put(Topic(TopicName("orders"), again, 1))
        assert store.end(PartitionKey(again, 0)) == 0
        assert not (tmp_path / ORDERS.hex()).exists()
        await until(lambda: not files(tmp_path, "*.deleted"))


async def test_what_a_stop_left_of_a_deleted_topic_goes_after_the_next_start(
    tmp_path: Path,
) -> None:
    left = tmp_path / (ORDERS.hex() + ".deleted") / "0"
    left.mkdir(parents=True)
    (left / f"{0:020d}.log").write_bytes(a_batch())
    async with run_store(tmp_path) as store:
        assert store.end() == 0
        await until(lambda: not files(tmp_path, "*.deleted"))


async def test_a_topic_deleted_while_the_store_was_down_is_removed(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.append(a_batch())
    other = Topic(TopicName("other"), TopicId(b"other".ljust(16, b"\x02")), 1)
    async with run_store(tmp_path, FakeCoordinator(other)):
        await until(lambda: not files(tmp_path, f"{ORDERS.hex()}*"))


async def test_a_topic_that_grows_has_its_new_partitions(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.append(a_batch(b"a"))
        store.coordinator.put(Topic(TopicName("orders"), ORDERS, 9))
        assert store.append(a_batch(b"b"), PartitionKey(ORDERS, 8)).base_offset == 0
        assert store.values() == [(0, b"a")]


async def test_what_a_topic_keeps_is_known_after_a_restart_and_gone_with_it(
    tmp_path: Path,
) -> None:
    coordinator = FakeCoordinator()
    stray = TopicId(b"stray".ljust(16, b"\x03"))
    async with run_store(tmp_path, coordinator) as store:
        for topic_id in (ORDERS, stray):
            kept: list[ErrorCode] = []
            store.topics.keep_cleanup_policy(topic_id, "compact", kept.append)
            await until(lambda kept=kept: kept == [ErrorCode.NONE])  # type: ignore[misc]
    async with run_store(tmp_path, coordinator) as store:
        assert store.topics.topic_configs(ORDERS)["cleanup.policy"] == "compact"
        assert store.topics.topic_configs(stray)["cleanup.policy"] == "delete", "never created"
        await until(lambda: not files(tmp_path, f"{stray.hex()}*"))
        coordinator.delete("orders")
        assert store.topics.topic_configs(ORDERS)["cleanup.policy"] == "delete"
        await until(lambda: not files(tmp_path, f"{ORDERS.hex()}*"))


async def test_a_compacted_topic_loses_nothing_to_others(tmp_path: Path) -> None:
    bounds = {
        "message_max_bytes": 1_000,
        "gateway_topics_segment_bytes": 1_000,
        "gateway_topics_retention_bytes": 2_000,
        "gateway_topics_total_bytes": 8_000,
    }
    async with run_store(tmp_path, **bounds) as store:
        kept: list[ErrorCode] = []
        store.topics.keep_cleanup_policy(ORDERS, "compact", kept.append)
        await until(lambda: bool(kept))
        for _ in range(10):
            store.append(a_batch(b"x" * 400))
        other = TopicId(b"other".ljust(16, b"\x02"))
        store.coordinator.put(Topic(TopicName("other"), other, 1))
        for _ in range(30):
            store.append(a_batch(b"y" * 400), PartitionKey(other, 0))
        assert store.start() == 0
        assert len(store.values()) == 10
        assert store.start(PartitionKey(other, 0)) > 0


async def test_the_store_leads_everything(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        leader = store.topics.leader_of(KEY)
        assert (leader.node_id, leader.epoch) == (None, 0)
        assert store.topics.brokers() == ()
        assert store.topics.topic_configs(ORDERS)["retention.bytes"] == str(64 << 20)


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match=r"gateway\.topics\.segment\.bytes"):
        TopicSettings(gateway_topics_segment_bytes=1_000)
    with pytest.raises(ValueError, match=r"gateway\.topics\.open\.files"):
        TopicSettings(gateway_topics_open_files=0)


# ---------------------------------------------------------------------------------------- waiting


async def test_a_watch_is_called_once_enough_was_appended(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        called: list[str] = []
        size = len(a_batch())
        store.topics.watch([KEY, PartitionKey(ORDERS, 1)], 2 * size, lambda: called.append("a"))
        store.append(a_batch(), PartitionKey(ORDERS, 2))
        store.append(a_batch(), PartitionKey(ORDERS, 1))
        assert called == []
        store.append(a_batch())
        store.append(a_batch())
        assert called == []
        await asyncio.sleep(0)
        assert called == ["a"]


async def test_a_cancelled_watch_is_not_called(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        called: list[str] = []
        watch = store.topics.watch([KEY], 1, lambda: called.append("a"))
        watch.cancel()
        store.append(a_batch())
        await asyncio.sleep(0)
        assert called == []


async def test_a_watch_ends_with_its_topic(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        called: list[str] = []
        store.topics.watch([PartitionKey(ORDERS, 3)], 1, lambda: called.append("a"))
        store.coordinator.delete("orders")
        await asyncio.sleep(0)
        assert called == ["a"]


def batch_of_times(*timestamps: int) -> bytes:
    """One batch whose records have these timestamps."""
    base = encode_batch(0, [(b"k", b"v")] * len(timestamps), timestamps[0])
    (header,) = headers(base)
    records = tuple(
        BatchRecord(offset, timestamp, b"k", b"v") for offset, timestamp in enumerate(timestamps)
    )
    fields = {name: getattr(header, name) for name in header.__dataclass_fields__}
    return reencode_batch(Batch(**fields | {"max_timestamp": NOW_MS}, records=records))
