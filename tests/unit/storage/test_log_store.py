"""The contract of ``LogStore``, on every implementation, and the pure functions of its module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from model.ids import LogOffset, LogPartition
from storage.codec.batch_encoding import encode_batch
from storage.log_store import (
    LatestEntry,
    LogStore,
    PartitionAppend,
    StoreCorrupt,
    StoreError,
    compute_latest_key,
    compute_prefix_end,
    compute_watermark_violation,
    pack_latest,
    unpack_latest,
)
from storage.rocks.rocks_opening import open_store
from tests.support.memory import MemoryLogStore
from tests.support.storage.appends import (
    append,
    compact,
    make_append,
    mark_all,
    offset_key,
    offset_value,
)

P0, P1, P2 = LogPartition(0), LogPartition(1), LogPartition(2)


@pytest.fixture(params=["memory", "rocksdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LogStore]:
    opened: LogStore
    if request.param == "memory":
        opened = MemoryLogStore(3)
    else:
        opened = open_store(tmp_path / "data", partitions=3)
    yield opened
    opened.close()


def test_a_new_store_is_empty(store: LogStore) -> None:
    assert store.partitions == 3
    assert len(store.cluster_id) == 22
    assert [store.next_offset(p) for p in (P0, P1, P2)] == [0, 0, 0]
    assert list(store.read_log(P0)) == list(store.latest(P0)) == list(store.side()) == []
    assert list(store.offset_group_ids(P0)) == []
    assert store.get_latest(P0, b"k") is None
    assert store.get_many_latest(P0, [b"k", b"l"]) == [None, None]
    assert store.get_many_latest(P0, []) == []


def test_partitions_do_not_touch(store: LogStore) -> None:
    append(store, {0: [(b"\xff", b"0")], 1: [(b"a", b"1"), (b"b", b"1")], 2: [(b"", b"2")]})
    assert [store.next_offset(p) for p in (P0, P1, P2)] == [1, 2, 1]
    assert [entry.key for entry in store.latest(P0)] == [b"\xff"]
    assert [entry.key for entry in store.latest(P1)] == [b"a", b"b"]
    assert [entry.key for entry in store.latest(P2)] == [b""]
    assert [len(list(store.read_log(p))) for p in (P0, P1, P2)] == [1, 1, 1]


def test_latest_is_the_last_value_or_nothing(store: LogStore) -> None:
    append(store, {0: [(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]})
    append(store, {0: [(b"a", b"2"), (b"b", None)]})
    assert list(store.latest(P0)) == [
        LatestEntry(b"a", LogOffset(3), 5, b"2"),
        LatestEntry(b"c", LogOffset(2), 5, b"1"),
    ]
    assert store.get_latest(P0, b"a") == LatestEntry(b"a", LogOffset(3), 5, b"2")
    assert store.get_latest(P0, b"b") is None
    assert store.get_many_latest(P0, [b"c", b"b"]) == [
        LatestEntry(b"c", LogOffset(2), 5, b"1"),
        None,
    ]
    assert list(store.latest(P0)) == compact(store.read_log(P0))


def test_latest_by_prefix(store: LogStore) -> None:
    append(
        store, {1: [(key, b"v") for key in (b"a", b"ab", b"a\xff", b"a\xff\xff", b"b", b"\xff")]}
    )
    assert [e.key for e in store.latest(P1, b"a")] == [b"a", b"ab", b"a\xff", b"a\xff\xff"]
    assert [e.key for e in store.latest(P1, b"a\xff")] == [b"a\xff", b"a\xff\xff"]
    assert [e.key for e in store.latest(P1, b"\xff")] == [b"\xff"]
    assert list(store.latest(P1, b"c")) == []


def test_several_batches_for_a_partition_in_one_write(store: LogStore) -> None:
    store.write([make_append(0, 0, [(b"a", b"1")] * 3), make_append(0, 3, [(b"a", b"2")])])
    assert store.next_offset(P0) == 4
    assert list(store.latest(P0)) == [LatestEntry(b"a", LogOffset(3), 5, b"2")]


def test_the_log_is_read_from_the_batch_that_holds_an_offset(store: LogStore) -> None:
    for size in (3, 1, 2):
        append(store, {0: [(b"k", b"v")] * size, 1: [(b"k", b"v")]})
    batches = list(store.read_log(P0))
    starts = [batches[0], batches[0], batches[0], batches[1], batches[2], batches[2]]
    for offset, first in enumerate(starts):
        found = list(store.read_log(P0, LogOffset(offset)))
        assert found == batches[batches.index(first) :]
    assert list(store.read_log(P0, LogOffset(6))) == []


def test_legacy_offset_keys_count_as_the_others(store: LogStore) -> None:
    key = offset_key("g")
    legacy = b"\x00\x00" + key[2:]
    append(store, {0: [(key, offset_value(1))]})
    append(store, {0: [(legacy, offset_value(2))]})
    expected = LatestEntry(key, LogOffset(1), 5, offset_value(2))
    assert list(store.latest(P0)) == [expected]
    assert store.get_latest(P0, legacy) == store.get_latest(P0, key) == expected
    assert store.get_many_latest(P0, [legacy]) == [expected]
    bad = PartitionAppend(P0, LogOffset(2), encode_batch(2, [(legacy, None)], 5), 1, {legacy: None})
    with pytest.raises(ValueError, match="compute_latest_key"):
        store.write([bad])


def make_pending(
    base_offset: int, pending: dict[tuple[int, bytes], bytes | None]
) -> PartitionAppend:
    batch = encode_batch(base_offset, [(b"k", b"v")], 5, producer_id=1, is_transactional=True)
    return PartitionAppend(P0, LogOffset(base_offset), batch, 1, {}, pending)


def test_what_is_pending_is_kept_by_producer(store: LogStore) -> None:
    first, second = offset_key("g", 0), offset_key("g", 1)
    value = pack_latest(0, 5, offset_value(1))
    entries = {(300, first): value, (2, second): value, (2, first): value}
    store.write([make_pending(0, {**entries, (7, first): value})])
    store.write([make_pending(1, {(7, first): None, (8, first): None})])
    expected = [
        (producer_id, LatestEntry(key, LogOffset(0), 5, offset_value(1)))
        for producer_id, key in sorted(entries)
    ]
    assert list(store.pending(P0)) == expected
    assert list(store.pending(P0, 2)) == expected[:2]
    assert list(store.pending(P0, 300)) == expected[2:]
    assert list(store.pending(P0, 3)) == list(store.pending(P1)) == []
    assert list(store.latest(P0)) == []


@pytest.mark.parametrize(
    ("pending", "why"),
    [
        ({(-1, offset_key("g")): b""}, "producer -1 has no transactions"),
        ({(1, b"\x00\x02\x00\x01g"): b""}, "is not an offset key"),
        ({(1, b"\x00\x00" + offset_key("g")[2:]): None}, "is not an offset key"),
    ],
)
def test_only_offsets_of_producers_pend(
    store: LogStore, pending: dict[tuple[int, bytes], bytes | None], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        store.write([make_pending(0, pending)])
    assert store.next_offset(P0) == 0


def test_a_gap_is_written_where_the_caller_says_so(store: LogStore) -> None:
    gapped = [replace(make_append(0, base, [(b"k", b"v")]), may_leave_gap=True) for base in (5, 9)]
    store.write(gapped)
    assert store.next_offset(P0) == 10
    assert list(store.read_log(P0)) == [each.batch for each in gapped]
    assert list(store.read_log(P0, LogOffset(6))) == [gapped[1].batch]
    for base in (9, 3):
        with pytest.raises(ValueError, match=f"continues at offset 10, not at {base}"):
            store.write([replace(make_append(0, base, [(b"k", b"v")]), may_leave_gap=True)])
    with pytest.raises(ValueError, match="continues at offset 10, not at 11"):
        store.write([make_append(0, 11, [(b"k", b"v")])])


def test_groups_with_offsets(store: LogStore) -> None:
    groups = ["", "a", "aa", "b", "\u00fc", "z" * 300]
    pairs = [(offset_key(g, p), offset_value(p)) for g in groups for p in range(40)]
    append(store, {1: [(b"\x00\x02\x00\x01a", b"v"), *pairs]})
    append(store, {1: [(offset_key("a", p), None) for p in range(40)]})
    append(store, {0: [(offset_key("other"), offset_value(1))]})
    found = list(store.offset_group_ids(P1))
    assert sorted(found) == sorted(set(groups) - {"a"})


def test_side_records(store: LogStore) -> None:
    store.write([], [(b"\x01b", b"1"), (b"\x01a", b""), (b"\x02", b"2")])
    store.write([make_append(0, 0, [(b"k", b"v")])], [(b"\x01b", None), (b"\x03", b"3")])
    assert list(store.side()) == [(b"\x01a", b""), (b"\x02", b"2"), (b"\x03", b"3")]
    assert list(store.side(b"\x01")) == [(b"\x01a", b"")]


def test_a_scan_sees_the_store_as_it_was(store: LogStore) -> None:
    append(store, {0: [(b"a", b"1"), (b"b", b"1")]})
    store.write([], [(b"s", b"1")])
    scans = store.latest(P0), store.read_log(P0), store.side()
    append(store, {0: [(b"a", b"2"), (b"b", None), (b"c", b"2")]})
    store.write([], [(b"s", b"2"), (b"t", b"2")])
    assert [e.value for e in scans[0]] == [b"1", b"1"]
    assert len(list(scans[1])) == 1
    assert list(scans[2]) == [(b"s", b"1")]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (make_append(0, 0, [(b"k", b"v")]), "continues at offset 1, not at 0"),
        (make_append(0, 2, [(b"k", b"v")]), "continues at offset 1, not at 2"),
        (make_append(3, 0, [(b"k", b"v")]), "no log partition 3"),
        (make_append(-1, 0, [(b"k", b"v")]), "no log partition -1"),
        (
            PartitionAppend(P0, LogOffset(1), encode_batch(1, [(b"", b"")], 5), 2, {}),
            "declares",
        ),
        (
            PartitionAppend(P0, LogOffset(1), encode_batch(0, [(b"", b"")], 5), 1, {}),
            "declares",
        ),
        (PartitionAppend(P0, LogOffset(1), b"short", 1, {}), "5 bytes are too few"),
    ],
)
def test_a_wrong_append_writes_nothing(store: LogStore, bad: PartitionAppend, why: str) -> None:
    append(store, {0: [(b"k", b"v")]})
    with pytest.raises(ValueError, match=why):
        store.write([make_append(1, 0, [(b"other", b"v")]), bad], [(b"side", b"v")])
    assert [store.next_offset(p) for p in (P0, P1, P2)] == [1, 0, 0]
    assert list(store.latest(P1)) == list(store.side()) == []


def test_only_what_is_synced_can_be_marked(store: LogStore) -> None:
    append(store, {0: [(b"k", b"v")], 1: [(b"k", b"v")]})
    with pytest.raises(ValueError, match="1 is not between"):
        store.mark_durable({P0: LogOffset(1)})
    store.sync()
    append(store, {0: [(b"k", b"v")]})
    store.mark_durable({P0: LogOffset(1)})
    with pytest.raises(ValueError, match="2 is not between"):
        store.mark_durable({P0: LogOffset(2)})
    with pytest.raises(ValueError, match="0 is not between"):
        store.mark_durable({P0: LogOffset(0)})
    mark_all(store)
    store.sync_watermark()


def test_a_closed_store_refuses(store: LogStore) -> None:
    append(store, {0: [(b"k", b"v")]})
    store.close()
    store.close()
    calls: list[Callable[[], object]] = [
        lambda: store.write([make_append(0, 1, [(b"k", b"v")])]),
        store.sync,
        lambda: store.mark_durable({}),
        store.sync_watermark,
        lambda: list(store.read_log(P0)),
        lambda: list(store.latest(P0)),
        lambda: store.get_latest(P0, b"k"),
        lambda: store.get_many_latest(P0, [b"k"]),
        lambda: list(store.offset_group_ids(P0)),
        lambda: list(store.side()),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="closed"):
            call()


def test_latest_entries_are_packed() -> None:
    packed = pack_latest(1 << 40, 7, b"value")
    assert unpack_latest(b"k", packed) == LatestEntry(b"k", LogOffset(1 << 40), 7, b"value")
    with pytest.raises(StoreCorrupt, match="only 15 bytes"):
        unpack_latest(b"k", packed[:15])


def test_prefix_ends() -> None:
    assert compute_prefix_end(b"a") == b"b"
    assert compute_prefix_end(b"a\xff\xff") == b"b"
    assert compute_prefix_end(b"\xff") is None
    assert compute_prefix_end(b"") is None


def test_latest_keys() -> None:
    assert compute_latest_key(b"\x00\x00x") == b"\x00\x01x"
    assert compute_latest_key(b"\x00\x01x") == b"\x00\x01x"
    assert compute_latest_key(b"\x00\x02") == b"\x00\x02"


def test_watermark_violations_name_what_was_lost() -> None:
    assert compute_watermark_violation([5, 5], [5, 0], (9, 9)) is None
    lost = compute_watermark_violation([5, 3], [5, 5], (7, 9))
    assert "log partition 1 ends at offset 3, 2 records below 5;" in str(lost)
    many = compute_watermark_violation([0] * 5, [1] * 5, (0, 9))
    assert "log partition 2 " in str(many)
    assert "and 2 more partitions" in str(many)
    assert "\n" not in str(many)
    assert "side records" in str(compute_watermark_violation([1], [1], (8, 9)))
