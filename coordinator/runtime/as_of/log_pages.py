"""Pages of the log: some record batches of one partition, as they lie there or of one group.

A worker reads a page from a snapshot of the store. Nothing is decoded unless a group is asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, assert_never

from coordinator.runtime.as_of.group_records import find_topics
from model.ids import GroupId, LogOffset, LogPartition, TopicName
from storage.codec.batch_encoding import select_records
from storage.codec.batches import CONTROL, decode_batch
from storage.codec.errors import TruncatedError
from storage.log.compression import decompress
from storage.log.group_history import BeyondHistory, LogTooShort
from storage.log.trim import HistoryStart

PAGE_BYTES: Final = 256 * 1024
"""The batches of a page, unless one alone is larger."""

SCANNED_BYTES_MAX: Final = 4 * 1024 * 1024
"""What is read for a page that may leave out most of it."""

_HEAD: Final = struct.Struct(">q13xhi8xq")
_COMPRESSION: Final = 0x07


class FromOffset(NamedTuple):
    """At the batch that has the offset, or else at the next one."""

    offset: LogOffset


class FromTime(NamedTuple):
    """At the first batch with a record of this time (wall-clock ms) or later, at ``offset`` or on.

    ``offset`` is how far earlier pages have looked.
    """

    timestamp_ms: int
    offset: LogOffset = LogOffset(0)


class BeforeOffset(NamedTuple):
    """At the last batch that begins before the offset."""

    offset: LogOffset


PageStart = FromOffset | FromTime | BeforeOffset


class PageQuestion(NamedTuple):
    """What to read: batches that begin before ``end``, all of them durable.

    ``is_compacted_wanted``: also what trimming has left before the history start.
    """

    partition: LogPartition
    start: PageStart
    end: LogOffset
    group_id: GroupId | None = None
    is_compacted_wanted: bool = False
    bytes_max: int = PAGE_BYTES


class LogPage(NamedTuple):
    """Whole batches, one after the other; everything before ``next_offset`` is read.

    ``is_full`` if it ends because of ``bytes_max``. ``scanned_bytes`` were read for it. ``topics``
    are those that the records of a group name.
    """

    batches: bytes
    next_offset: LogOffset
    history: HistoryStart
    is_full: bool
    scanned_bytes: int
    topics: frozenset[TopicName] = frozenset()


class PageReads(Protocol):
    """What pages need of a log."""

    def read_log(self, partition: LogPartition, start: LogOffset, /) -> Iterator[bytes]:
        """Record batches in offset order, from the one that contains ``start``."""

    def read_batch_before(self, partition: LogPartition, offset: LogOffset, /) -> bytes | None:
        """The last batch that begins before an offset."""

    def next_offset(self, partition: LogPartition, /) -> LogOffset:
        """The end of the log."""


def read_page(log: PageReads, question: PageQuestion, history: HistoryStart) -> LogPage:
    """Read a page; ``history`` is the history start of the partition in the same snapshot.

    Raises ``LogTooShort`` if the snapshot ends before the question, ``BeyondHistory`` for a start
    before the history, and ``CodecError`` for damaged batches.
    """
    if log.next_offset(question.partition) < question.end:
        raise LogTooShort
    start = _find_start(log, question, history)
    if start < history.offset and not question.is_compacted_wanted:
        raise BeyondHistory(history)
    since_ms = question.start.timestamp_ms if isinstance(question.start, FromTime) else None
    reading = _Page(question, start, since_ms)
    for batch in log.read_log(question.partition, start):
        if not reading.add(batch):
            break
    else:
        reading.next_offset = question.end
    return LogPage(
        b"".join(reading.batches),
        LogOffset(max(reading.next_offset, start)),
        history,
        reading.is_full,
        reading.scanned,
        frozenset(reading.topics),
    )


def _find_start(log: PageReads, question: PageQuestion, history: HistoryStart) -> LogOffset:
    match question.start:
        case FromOffset(offset):
            return offset
        case FromTime(timestamp_ms, offset):
            # All later records are in the history, and there is no need to look before it.
            return max(offset, history.offset) if timestamp_ms > history.before_ms else offset
        case BeforeOffset(offset):
            batch = log.read_batch_before(question.partition, offset)
            return offset if batch is None else LogOffset(_HEAD.unpack_from(batch)[0])
        case _:
            assert_never(question.start)


class _Page:
    """Takes the batches of a page, one by one."""

    def __init__(self, question: PageQuestion, start: int, since_ms: int | None) -> None:
        self._question = question
        self._since_ms = since_ms
        name = (question.group_id or "").encode()
        self._prefix = None if question.group_id is None else struct.pack(">H", len(name)) + name
        self._size = 0
        self.batches: list[bytes] = []
        self.next_offset = start
        self.is_full = False
        self.scanned = 0
        self.topics: set[TopicName] = set()

    def add(self, batch: bytes) -> bool:
        """Take a batch, or leave it to the next page."""
        if len(batch) < _HEAD.size:
            raise TruncatedError(f"a batch of {len(batch)} bytes has no whole header")
        base_offset, attributes, last_delta, max_timestamp = _HEAD.unpack_from(batch)
        if base_offset >= self._question.end:
            self.next_offset = int(self._question.end)
            return False
        if self.scanned >= SCANNED_BYTES_MAX:
            return False
        kept: bytes | None = batch
        if self._since_ms is not None and max_timestamp < self._since_ms:
            kept = None
        elif self._prefix is not None and not attributes & CONTROL:
            kept = self._select(batch, attributes, self._prefix)
        if kept is not None:
            if self._size and self._size + len(kept) > self._question.bytes_max:
                self.is_full = True
                return False
            self._since_ms = None
            self._size += len(kept)
            self.batches.append(kept)
        self.scanned += len(batch)
        self.next_offset = base_offset + last_delta + 1
        return True

    def _select(self, data: bytes, attributes: int, prefix: bytes) -> bytes | None:
        """The batch reduced to the group's records; ``None`` if it has none of them."""
        if not attributes & _COMPRESSION and prefix not in data:
            return None
        batch = decode_batch(data, decompress=decompress)
        records = []
        for record in batch.records:
            if record.key is not None and record.key.startswith(prefix, 2):
                topics = find_topics(record)
                if topics is not None:
                    self.topics |= topics
                    records.append(record)
        if not records:
            return None
        if len(records) == len(batch.records):
            return data
        return select_records(batch, records, is_transactional=batch.is_transactional)
