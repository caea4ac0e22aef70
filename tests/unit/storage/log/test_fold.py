"""``PartitionFold``: one test per rule, and a real Kafka's log."""

from __future__ import annotations

from collections.abc import Callable

import cramjam
import crc32c
import pytest

from model.ids import LogOffset
from storage.codec.batch_encoding import encode_batch, encode_marker, reencode_batch
from storage.codec.batches import Batch, decode_batch
from storage.codec.errors import ChecksumError, CodecError
from storage.codec.record_codec import decode_key
from storage.log.fold import PartitionFold
from storage.log_store import LatestEntry
from tests.support.batches import decode_batches
from tests.support.storage.appends import Pair, offset_key
from tests.support.storage.golden import golden_lines, segments

K = offset_key("g")
LEGACY_K = b"\x00\x00" + K[2:]


class Log:
    """Builds batches at consecutive offsets and folds them."""

    def __init__(self) -> None:
        self.fold = PartitionFold()

    def plain(self, *pairs: Pair) -> Log:
        return self._apply(lambda base: encode_batch(base, pairs, 5))

    def pend(self, producer_id: int, *pairs: Pair, epoch: int = 0) -> Log:
        return self._apply(
            lambda base: encode_batch(
                base,
                pairs,
                5,
                producer_id=producer_id,
                producer_epoch=epoch,
                is_transactional=True,
            )
        )

    def end(self, producer_id: int, committed: bool, epoch: int = 0) -> Log:
        return self._apply(
            lambda base: encode_marker(
                base,
                5,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=committed,
                coordinator_epoch=0,
            )
        )

    def _apply(self, encode: Callable[[int], bytes]) -> Log:
        self.fold.apply(encode(self.fold.next_offset))
        return self

    @property
    def visible(self) -> dict[bytes, bytes]:
        return {key: entry.value for key, entry in self.fold.latest.items()}

    @property
    def pending(self) -> dict[int, dict[bytes, bytes]]:
        return {
            producer_id: {key: entry.value for key, entry in entries.items()}
            for producer_id, entries in self.fold.pending.items()
        }


def test_the_last_record_of_a_key_stands_at_its_own_offset_and_time() -> None:
    log = Log().plain((b"\x00\x02a", b"1"), (b"\x00\x02b", b"1")).plain((b"\x00\x02a", b"2"))
    assert log.fold.latest == {
        b"\x00\x02a": LatestEntry(b"\x00\x02a", LogOffset(2), 5, b"2"),
        b"\x00\x02b": LatestEntry(b"\x00\x02b", LogOffset(1), 5, b"1"),
    }
    assert log.fold.next_offset == 3


def test_a_tombstone_deletes_and_one_for_nothing_does_nothing() -> None:
    log = Log().plain((K, b"1")).plain((K, None), (b"\x00\x03x", None))
    assert log.visible == {}


@pytest.mark.parametrize("first", [K, LEGACY_K])
@pytest.mark.parametrize("second", [K, LEGACY_K])
def test_a_legacy_offset_key_is_its_twin(first: bytes, second: bytes) -> None:
    assert Log().plain((first, b"1")).plain((second, b"2")).visible == {K: b"2"}
    assert Log().plain((first, b"1")).plain((second, None)).visible == {}
    log = Log().pend(1, (first, b"1")).end(1, committed=True)
    assert log.visible == {K: b"1"}
    assert Log().pend(1, (first, b"1")).plain((second, None)).pending == {}


def test_what_is_pending_is_not_visible() -> None:
    log = Log().plain((K, b"1")).pend(7, (K, b"2"))
    assert log.visible == {K: b"1"}
    assert log.pending == {7: {K: b"2"}}


def test_a_commit_shows_what_waited_where_it_was_written() -> None:
    log = Log().pend(7, (K, b"1")).plain((b"\x00\x03x", b"v")).end(7, committed=True)
    assert log.fold.latest[K] == LatestEntry(K, LogOffset(0), 5, b"1")
    assert log.pending == {}
    assert log.fold.next_offset == 3


def test_an_abort_drops_what_waited() -> None:
    log = Log().plain((K, b"1")).pend(7, (K, b"2")).end(7, committed=False)
    assert (log.visible, log.pending) == ({K: b"1"}, {})


def test_a_plain_commit_after_a_pending_one_wins() -> None:
    log = Log().pend(7, (K, b"1")).plain((K, b"2")).end(7, committed=True)
    assert log.visible == {K: b"2"}


def test_a_pending_commit_after_a_plain_one_wins() -> None:
    log = Log().plain((K, b"1")).pend(7, (K, b"2")).end(7, committed=True)
    assert log.visible == {K: b"2"}


def test_of_two_transactions_the_record_that_was_written_last_wins() -> None:
    log = Log().pend(1, (K, b"1")).pend(2, (K, b"2"))
    log.end(2, committed=True).end(1, committed=True)
    assert log.visible == {K: b"2"}


def test_within_a_transaction_the_last_record_of_a_key_counts() -> None:
    log = Log().pend(1, (K, b"1")).pend(1, (K, b"2"), epoch=1).end(1, committed=True, epoch=1)
    assert log.visible == {K: b"2"}


def test_a_tombstone_drops_what_waits_for_its_key() -> None:
    other = offset_key("g", 1)
    log = Log().pend(1, (K, b"1"), (other, b"1")).pend(2, (K, b"2")).plain((K, None))
    assert log.pending == {1: {other: b"1"}}
    log.end(1, committed=True).end(2, committed=True)
    assert (log.visible, log.pending) == ({other: b"1"}, {})
    log.pend(2, (K, b"3")).end(2, committed=True)
    assert log.visible == {other: b"1", K: b"3"}


def test_only_commits_wait() -> None:
    group = b"\x00\x02\x00\x01g"
    log = Log().pend(1, (group, b"1"), (K, b"1")).pend(1, (b"\x7f\x00odd", b"2"))
    assert log.visible == {group: b"1", b"\x7f\x00odd": b"2"}
    assert Log().plain((K, b"1")).pend(1, (K, None)).visible == {}


def test_an_idempotent_batch_is_a_plain_one() -> None:
    fold = PartitionFold()
    fold.apply(encode_batch(0, [(K, b"1")], 5, producer_id=3, producer_epoch=0))
    assert (fold.latest[K].value, fold.pending) == (b"1", {})


def test_a_transactional_batch_of_no_producer_is_a_plain_one() -> None:
    fold = PartitionFold()
    fold.apply(encode_batch(0, [(K, b"1")], 5, is_transactional=True))
    assert (fold.latest[K].value, fold.pending) == (b"1", {})


def test_a_marker_for_nothing_does_nothing() -> None:
    log = Log().plain((K, b"1")).end(9, committed=True).end(9, committed=False)
    assert (log.visible, log.fold.next_offset) == ({K: b"1"}, 3)


def test_a_marker_of_another_epoch_ends_the_transaction() -> None:
    assert Log().pend(1, (K, b"1")).end(1, committed=False, epoch=4).pending == {}


def make_odd_control(records: int, key: bytes) -> bytes:
    marker = decode_batch(
        encode_marker(0, 5, producer_id=1, producer_epoch=0, committed=True, coordinator_epoch=0)
    )
    fields = {name: getattr(marker, name) for name in Batch.__dataclass_fields__}
    kept = tuple(record._replace(key=key) for record in marker.records[:records])
    return reencode_batch(Batch(**{**fields, "records": kept, "count": records}))


def test_control_batches_that_end_nothing() -> None:
    emptied = make_odd_control(0, b"")
    leader_change = make_odd_control(1, b"\x00\x00\x00\x02")
    for odd in (emptied, leader_change):
        fold = PartitionFold()
        fold.apply(odd)
        assert (fold.latest, fold.pending, fold.next_offset) == ({}, {}, 1)


def test_a_key_of_one_byte_and_no_key_at_all() -> None:
    batch = decode_batch(encode_batch(0, [(b"k", b"v"), (b"", b"w")], 5))
    no_key = tuple(record._replace(key=record.key or None) for record in batch.records)
    fields = {name: getattr(batch, name) for name in Batch.__dataclass_fields__}
    fold = PartitionFold()
    fold.apply(reencode_batch(Batch(**{**fields, "records": no_key})))
    assert list(fold.latest) == [b"k"]
    assert fold.next_offset == 2


def test_gaps_are_as_good_as_none() -> None:
    fold = PartitionFold()
    fold.apply(encode_batch(10, [(K, b"1")], 5))
    fold.apply(encode_batch(90, [(K, b"2")], 5))
    assert fold.latest[K].offset == 90


def test_a_batch_out_of_order_or_damaged_changes_nothing() -> None:
    log = Log().plain((K, b"1")).plain((K, b"2"))
    with pytest.raises(CodecError, match="at offset 1 does not come after offset 1"):
        log.fold.apply(encode_batch(1, [(K, b"3")], 5))
    damaged = bytearray(encode_batch(2, [(K, b"3")], 5))
    damaged[-1] ^= 1
    with pytest.raises(ChecksumError):
        log.fold.apply(bytes(damaged))
    assert (log.visible, log.fold.next_offset) == ({K: b"2"}, 2)


@pytest.mark.parametrize(
    ("codec", "compress"),
    [
        (1, cramjam.gzip.compress),
        (2, cramjam.snappy.compress_raw),
        (3, cramjam.lz4.compress),
        (4, cramjam.zstd.compress),
    ],
)
def test_compressed_batches(codec: int, compress: Callable[[bytes], bytes]) -> None:
    plain = encode_batch(4, [(K, b"v" * 100)] * 3, 5, producer_id=1, is_transactional=True)
    fold = PartitionFold()
    fold.apply(compress_batch(plain, codec, compress))
    assert fold.pending == {1: {K: LatestEntry(K, LogOffset(6), 5, b"v" * 100)}}


def compress_batch(data: bytes, codec: int, compress: Callable[[bytes], bytes]) -> bytes:
    """Compress the records of a batch by hand and fix its length, attributes and CRC."""
    records = bytes(compress(data[61:]))
    attributes = int.from_bytes(data[21:23], "big") | codec
    body = attributes.to_bytes(2, "big") + data[23:61] + records
    length = (len(body) + 9).to_bytes(4, "big")
    crc = crc32c.crc32c(body).to_bytes(4, "big")
    return data[:8] + length + data[12:17] + crc + body


def test_kafkas_own_log() -> None:
    """Compared with a naive fold of the records that Kafka decoded."""
    for partition, data in segments().items():
        fold = PartitionFold()
        for batch in decode_batches(data):
            fold.apply_batch(batch)
        latest, pending = fold_plainly(partition)
        assert {key: entry.offset for key, entry in fold.latest.items()} == latest
        found = {
            (producer_id, key): entry.offset
            for producer_id, entries in fold.pending.items()
            for key, entry in entries.items()
        }
        assert found == pending


def fold_plainly(partition: int) -> tuple[dict[bytes, int], dict[tuple[int, bytes], int]]:
    latest: dict[bytes, int] = {}
    pending: dict[tuple[int, bytes], int] = {}
    for record in golden_lines():
        if record["partition"] != partition:
            continue
        key, producer_id = bytes.fromhex(record["key"]), record["producerId"]
        if record["isControl"]:
            for waiting in [known for known in pending if known[0] == producer_id]:
                offset = pending.pop(waiting)
                if record["type"] == "control:COMMIT":
                    latest[waiting[1]] = max(offset, latest.get(waiting[1], -1))
        elif record["isTransactional"]:
            pending[producer_id, key] = record["offset"]
        elif record["value"] is None:
            latest.pop(key, None)
        else:
            latest[key] = record["offset"]
    return latest, pending


def test_the_transactions_that_kafka_left_open() -> None:
    found = {}
    for partition, data in segments().items():
        fold = PartitionFold()
        for batch in decode_batches(data):
            fold.apply_batch(batch)
        if fold.pending:
            found[partition] = [
                decode_key(key) for entries in fold.pending.values() for key in entries
            ]
    groups = {key.group for keys in found.values() for key in keys}  # type: ignore[union-attr]
    assert groups == {"o19-txn-classic.pending", "o20-txn-consumer.pending"}
