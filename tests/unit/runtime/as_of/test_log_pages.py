"""Pages of the log: what lies in it, whole batches, bounded; of one group its records alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from coordinator.runtime.as_of import log_pages
from coordinator.runtime.as_of.log_pages import (
    BeforeOffset,
    FromOffset,
    FromTime,
    LogPage,
    PageQuestion,
    PageStart,
    read_page,
)
from model.ids import GroupId, LogOffset, LogPartition, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue
from model.log.share_records import ShareGroupMetadataKey, ShareGroupMetadataValue
from storage.codec.batch_encoding import encode_batch, encode_marker
from storage.codec.batches import decode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log.group_history import BeyondHistory, LogTooShort
from storage.log.trim import NO_HISTORY_START, HistoryStart
from storage.log_store import read_batch_range

P = LogPartition(0)
TRIMMED = HistoryStart(LogOffset(4), 1_003)


class Log:
    """Batches as they lie in a log."""

    def __init__(self, batches: Sequence[bytes]) -> None:
        self.batches = batches

    def read_log(self, partition: LogPartition, start: LogOffset) -> Iterator[bytes]:
        return (batch for batch in self.batches if sum(read_batch_range(batch)) > start)

    def read_batch_before(self, partition: LogPartition, offset: LogOffset) -> bytes | None:
        before = [batch for batch in self.batches if read_batch_range(batch)[0] < offset]
        return before[-1] if before else None

    def next_offset(self, partition: LogPartition) -> LogOffset:
        return LogOffset(sum(read_batch_range(self.batches[-1])) if self.batches else 0)


def commit(group: str, topic: str, offset: int = 1) -> tuple[bytes, bytes | None]:
    key = OffsetCommitKey(GroupId(group), TopicName(topic), 0)
    return encode_key(key), encode_value(OffsetCommitValue(offset, -1, "", 0))


def one(offset: int, *records: tuple[bytes, bytes | None]) -> bytes:
    """A batch at an offset, at 1000 ms and its offset."""
    return encode_batch(offset, records, 1_000 + offset)


LOG = Log([one(offset, commit("g" if offset % 2 else "other", "t")) for offset in range(10)])


def read(
    log: Log,
    start: PageStart,
    end: int = 10,
    history: HistoryStart = NO_HISTORY_START,
    *,
    group: str | None = None,
    compacted: bool = False,
    bytes_max: int = 1 << 20,
) -> LogPage:
    group_id = None if group is None else GroupId(group)
    question = PageQuestion(P, start, LogOffset(end), group_id, compacted, bytes_max)
    return read_page(log, question, history)


def at(offset: int) -> FromOffset:
    return FromOffset(LogOffset(offset))


def before(offset: int) -> BeforeOffset:
    return BeforeOffset(LogOffset(offset))


def test_a_page_has_the_bytes_of_the_log() -> None:
    page = read(LOG, at(3), 7)
    assert page.batches == b"".join(LOG.batches[3:7])
    assert page.next_offset == 7
    assert not page.is_full


def test_pages_of_any_size_are_the_log_together() -> None:
    for bytes_max in (1, len(LOG.batches[0]), 3 * len(LOG.batches[0]) + 1):
        pages, offset = [], 0
        while offset < 10:
            page = read(LOG, at(offset), bytes_max=bytes_max)
            assert len(page.batches) <= max(bytes_max, len(LOG.batches[0]))
            assert page.is_full == (page.next_offset < 10)
            pages.append(page.batches)
            offset = page.next_offset
        assert b"".join(pages) == b"".join(LOG.batches)


def test_a_gap_and_the_end_are_read_over() -> None:
    log = Log([LOG.batches[0], LOG.batches[5], LOG.batches[9]])
    assert read(log, at(1), 9).batches == LOG.batches[5]
    assert read(log, at(1), 9).next_offset == 9
    assert read(log, at(6), 9) == LogPage(b"", LogOffset(9), NO_HISTORY_START, False, 0)


def test_a_batch_is_whole_wherever_the_reading_begins() -> None:
    log = Log([one(0, commit("g", "a"), commit("g", "b"), commit("g", "c"))])
    page = read(log, at(2), 3)
    assert page.batches == log.batches[0]
    assert page.next_offset == 3


def test_the_last_batch_before_an_offset() -> None:
    log = Log([LOG.batches[0], LOG.batches[5], LOG.batches[9]])
    assert read(log, before(9), 9).batches == LOG.batches[5]
    assert read(log, before(6), 9).batches == LOG.batches[5]
    assert read(log, before(5), 5).batches == LOG.batches[0]
    assert read(log, before(0), 1).batches == LOG.batches[0]


def test_a_time_is_found_and_what_follows_it_is_all_there() -> None:
    log = Log([one(0, commit("g", "t")), encode_batch(1, [commit("g", "t")], 9), LOG.batches[2]])
    assert read(log, FromTime(1_001), 3).batches == LOG.batches[2]
    assert read(log, FromTime(1_000), 3).batches == b"".join(log.batches)
    assert read(log, FromTime(1_003), 3) == LogPage(
        b"", LogOffset(3), NO_HISTORY_START, False, sum(map(len, log.batches))
    )


def test_positions_before_the_history_are_refused_unless_asked_for() -> None:
    for start in (at(3), before(4), FromTime(1_003)):
        with pytest.raises(BeyondHistory) as refused:
            read(LOG, start, history=TRIMMED)
        assert refused.value.start == TRIMMED
        assert read(LOG, start, history=TRIMMED, compacted=True).batches
    assert read(LOG, at(4), history=TRIMMED).batches == b"".join(LOG.batches[4:])
    assert read(LOG, FromTime(1_004), history=TRIMMED).batches == b"".join(LOG.batches[4:])


def test_a_snapshot_that_ends_too_soon_is_no_answer() -> None:
    with pytest.raises(LogTooShort):
        read(LOG, at(0), 11)


def test_what_is_read_for_a_page_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pages, "SCANNED_BYTES_MAX", 3 * len(LOG.batches[0]))
    page = read(LOG, at(0), group="nobody")
    assert page.batches == b""
    assert 3 <= page.next_offset < 10
    assert not page.is_full
    found = read(LOG, FromTime(1_009))
    assert found.batches == b""
    assert found.next_offset == page.next_offset


# -------------------------------------------------------------------------------------- of a group


def test_a_group_is_shown_its_records_alone_at_their_offsets() -> None:
    mixed = one(0, commit("g", "a", 7), commit("other", "secret"), commit("g", "b", 8))
    marker = encode_marker(
        3, 1_003, producer_id=9, producer_epoch=0, committed=True, coordinator_epoch=0
    )
    log = Log([mixed, marker, one(4, commit("other", "secret")), one(5, commit("g", "c"))])
    page = read(log, at(0), 6, group="g")
    assert page.topics == {"a", "b", "c"}
    assert b"secret" not in page.batches
    reduced = page.batches[: -len(marker) - len(log.batches[3])]
    assert page.batches == reduced + marker + log.batches[3]
    batch = decode_batch(reduced)
    assert [(record.offset, record.timestamp) for record in batch.records] == [
        (0, 1_000),
        (2, 1_000),
    ]
    assert [record.value for record in batch.records] == [
        commit("g", "a", 7)[1],
        commit("g", "b", 8)[1],
    ]


def test_a_transaction_stays_one() -> None:
    batch = encode_batch(
        0,
        [commit("other", "t"), commit("g", "t")],
        1_000,
        producer_id=9,
        producer_epoch=3,
        is_transactional=True,
    )
    found = decode_batch(read(Log([batch]), at(0), 2, group="g").batches)
    assert (found.is_transactional, found.producer_id, found.producer_epoch) == (True, 9, 3)
    assert [record.offset for record in found.records] == [1]


def test_a_group_whose_name_is_in_a_value_is_not_meant() -> None:
    name = b"\x00\x01g"
    key, _ = commit("other", "t")
    log = Log([one(0, (key, name))])
    assert read(log, at(0), 1, group="g").batches == b""


def test_records_that_cannot_be_told_are_left_out() -> None:
    share = (
        encode_key(ShareGroupMetadataKey(GroupId("g"))),
        encode_value(ShareGroupMetadataValue(1, 0)),
    )
    key, value = commit("g", "t")
    newer = (key, b"\x00\x63" + (value or b"")[2:])
    log = Log([one(0, share, newer, commit("g", "t"))])
    found = decode_batch(read(log, at(0), 3, group="g").batches)
    assert [record.offset for record in found.records] == [2]
