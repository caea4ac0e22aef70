"""One group at a position in the past: its records, folded from the partition's log.

The log is streamed and only the group's records are kept. Batches are told apart by their bytes
first, so that those of other groups are not decoded.

A position can be answered from the history start on (``storage.log.trim``). A log that came from
Kafka may have been compacted there, which shows by offsets that are missing: of such a log the
positions behind the last missing offset are answered, and those before which none is missing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol, assert_never

from model.as_of import AsOf, AsOfOffset, AsOfTimestamp, LogPosition
from model.ids import GroupId, LogOffset, LogPartition
from model.value import value
from storage.codec.batches import decode_batch
from storage.codec.errors import TruncatedError
from storage.log.compression import decompress
from storage.log.fold import PartitionFold
from storage.log.trim import NO_HISTORY_START, HistoryStart
from storage.log_store import LatestEntry

_COMPRESSION = 0x07
_CONTROL = 0x20
_NEVER = 1 << 63


class LogReads(Protocol):
    """The log of a store, of any kind."""

    def read_log(self, partition: LogPartition, start: LogOffset, /) -> Iterable[bytes]:
        """Record batches in offset order, from the one that holds ``start`` on."""


class BeyondHistory(Exception):
    """The position lies before what is kept; ``start`` is the first that does not."""

    def __init__(self, start: HistoryStart) -> None:
        super().__init__(start)
        self.start = start


class InFuture(Exception):
    """The position lies behind the end of the log; ``last`` is the last there is."""

    def __init__(self, last: LogPosition) -> None:
        super().__init__(last)
        self.last = last


class LogTooShort(Exception):
    """What was read ends before the position, and before where the log is known to end."""


@value
class GroupHistory:
    """The group's entries by record key, and those that wait for a marker by producer id."""

    group_id: GroupId
    position: LogPosition
    latest: Mapping[bytes, LatestEntry]
    pending: Mapping[int, Mapping[bytes, LatestEntry]]


class GroupQuestion(NamedTuple):
    """``end`` is the offset up to which the partition counts at all, ``now_ms`` the wall time."""

    partition: LogPartition
    group_id: GroupId
    as_of: AsOf
    end: LogOffset
    now_ms: int


def fold_group(
    log: LogReads, question: GroupQuestion, start: HistoryStart = NO_HISTORY_START
) -> GroupHistory:
    """Reads the log up to the position; ``start`` is where its history begins.

    Raises ``BeyondHistory``, ``InFuture``, ``LogTooShort``, and ``CodecError`` for damage.
    """
    check_within_history(question.as_of, start)
    _check_reached(log, question)
    walk = _Walk(log.read_log(question.partition, LogOffset(0)), question, start)
    fold = _GroupFold(question.group_id)
    for head, data in walk.until_position():
        fold.apply(head, data)
    walk.check_whole()
    return GroupHistory(
        question.group_id, walk.position, fold.partition.latest, fold.partition.pending
    )


def check_within_history(as_of: AsOf, start: HistoryStart) -> None:
    """Raises ``BeyondHistory``."""
    match as_of:
        case AsOfOffset(offset):
            is_kept = offset >= start.offset - 1
        case AsOfTimestamp(timestamp_ms):
            is_kept = timestamp_ms >= start.before_ms
        case _:
            assert_never(as_of)
    if not is_kept:
        raise BeyondHistory(start)


def _check_reached(log: LogReads, question: GroupQuestion) -> None:
    """Raises ``InFuture``; the time of the last batch may be ahead of the wall."""
    partition, end = question.partition, question.end
    last = LogPosition(partition, LogOffset(end - 1), -1)
    if end > 0:
        data = next(iter(log.read_log(partition, LogOffset(end - 1))), None)
        if data is None:
            raise LogTooShort
        last = replace(last, timestamp_ms=_read_head(data).max_timestamp)
    match question.as_of:
        case AsOfOffset(offset):
            is_future = offset >= end
        case AsOfTimestamp(timestamp_ms):
            is_future = timestamp_ms > max(question.now_ms, last.timestamp_ms)
        case _:
            assert_never(question.as_of)
    if is_future:
        raise InFuture(last)


def _compute_bounds(as_of: AsOf) -> tuple[int, int]:
    """The last base offset and the last timestamp that count."""
    match as_of:
        case AsOfOffset(offset):
            return offset, _NEVER
        case AsOfTimestamp(timestamp_ms):
            return _NEVER, timestamp_ms
        case _:
            assert_never(as_of)


class _Head(NamedTuple):
    """What is read of every batch, of which there may be millions: a part of its header."""

    base_offset: int
    attributes: int
    last_delta: int
    max_timestamp: int
    producer_id: int
    records: int


_HEAD = struct.Struct(">q13xhi8xqq6xi")


def _read_head(data: bytes) -> _Head:
    if len(data) < _HEAD.size:
        raise TruncatedError(f"a batch of {len(data)} bytes has no whole header")
    return _Head._make(_HEAD.unpack_from(data))


class _Walk:
    """The batches up to a position, and what is missing before it and behind it."""

    def __init__(
        self, batches: Iterable[bytes], question: GroupQuestion, start: HistoryStart
    ) -> None:
        self._batches = iter(batches)
        self._question = question
        self._start = start
        self._last_ms = start.before_ms
        self._next_offset = int(start.offset)
        self._whole_from = start
        """Behind the last missing offset that was met."""
        self._first_later: _Head | None = None
        self.position = LogPosition(question.partition, LogOffset(-1), -1)
        """Of the last batch that counts, once all were seen."""

    def until_position(self) -> Iterator[tuple[_Head, bytes]]:
        """The batches that count, in their order."""
        question, start_offset = self._question, self._start.offset
        offset_max, time_max = _compute_bounds(question.as_of)
        for data in self._batches:
            head = _read_head(data)
            base_offset = head.base_offset
            if base_offset >= question.end:
                break
            if base_offset >= start_offset:
                if base_offset > offset_max or head.max_timestamp > time_max:
                    self._first_later = head
                    break
                self._note(head)
                self._last_ms = max(self._last_ms, head.max_timestamp)
            yield head, data
        last = LogOffset(self._next_offset - 1)
        self.position = LogPosition(question.partition, last, self._last_ms)

    def _note(self, head: _Head) -> None:
        """Sees whether offsets are missing before a batch, or in it."""
        next_offset = head.base_offset + head.last_delta + 1
        if head.base_offset > self._next_offset or head.records <= head.last_delta:
            before_ms = max(head.max_timestamp, self._whole_from.before_ms)
            self._whole_from = HistoryStart(LogOffset(next_offset), before_ms)
        self._next_offset = next_offset

    def check_whole(self) -> None:
        """Raises ``BeyondHistory`` where something that counts at the position may be missing.

        What a cleaner removes leaves its offset empty. Where none is empty up to the position, all
        is there; else what was superseded behind the position may be missing before it, unless
        the cleaner had not come so far.
        """
        if self._whole_from == self._start or self._first_later is None:
            return
        self._note(self._first_later)
        for data in self._batches:
            head = _read_head(data)
            if head.base_offset >= self._question.end:
                break
            self._note(head)
        check_within_history(self._question.as_of, self._whole_from)


class _GroupFold:
    """``PartitionFold`` of the records of one group."""

    def __init__(self, group_id: GroupId) -> None:
        name = group_id.encode()
        self._prefix = len(name).to_bytes(2, "big") + name
        """What follows the type in each key of the group."""
        self.partition = PartitionFold()

    def apply(self, head: _Head, data: bytes) -> None:
        if head.attributes & _CONTROL:
            if head.producer_id in self.partition.pending:
                self.partition.apply(data)
            return
        if not head.attributes & _COMPRESSION and self._prefix not in data:
            return
        batch = decode_batch(data, decompress=decompress)
        records = tuple(
            record
            for record in batch.records
            if record.key is not None and record.key.startswith(self._prefix, 2)
        )
        if len(records) < len(batch.records):
            batch = replace(batch, records=records)
        if records:
            self.partition.apply_batch(batch)
