"""The past state of one group at a log position, folded from the partition's log.

The log is streamed and only the group's records are kept in memory. A batch that does not contain
the group's key bytes is skipped without decoding it.

Positions from the history start on can be answered (``storage.log.trim``). A log imported from
Kafka may have been compacted there, which leaves offset gaps. In such a log, a position can be
answered if no offset before it is missing, or if it lies above the last missing offset.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol, assert_never

from model.ids import GroupId, LogOffset, LogPartition
from model.past.as_of import AsOf, AsOfOffset, AsOfTimestamp, LogPosition
from model.value import value
from storage.codec.batches import decode_batch
from storage.codec.errors import TruncatedError
from storage.log.compression import decompress
from storage.log.fold import PartitionFold
from storage.log.trim import NO_HISTORY_START, HistoryStart
from storage.log_store import LatestEntry

COMPRESSION = 0x07
CONTROL = 0x20
_NEVER = 1 << 63


class LogReads(Protocol):
    """Read access to the log of any store."""

    def read_log(self, partition: LogPartition, start: LogOffset, /) -> Iterable[bytes]:
        """Iterate over record batches in offset order, from the batch that contains ``start``."""


class BeyondHistory(Exception):
    """The position is below the retained history; ``start`` is the first retained position."""

    def __init__(self, start: HistoryStart) -> None:
        super().__init__(start)
        self.start = start


class InFuture(Exception):
    """The position is past the end of the log; ``last`` is the last position of the log."""

    def __init__(self, last: LogPosition) -> None:
        super().__init__(last)
        self.last = last


class LogTooShort(Exception):
    """The log that was read ends below ``GroupQuestion.end``."""


@value
class GroupHistory:
    """The entries of a group by record key, and its pending transactional ones by producer id."""

    group_id: GroupId
    position: LogPosition
    latest: Mapping[bytes, LatestEntry]
    pending: Mapping[int, Mapping[bytes, LatestEntry]]


class GroupQuestion(NamedTuple):
    """Which group to read, and as of when.

    Batches at or above offset ``end`` are ignored. ``now_ms`` is the wall-clock time.
    """

    partition: LogPartition
    group_id: GroupId
    as_of: AsOf
    end: LogOffset
    now_ms: int


def fold_group(
    log: LogReads, question: GroupQuestion, start: HistoryStart = NO_HISTORY_START
) -> GroupHistory:
    """Fold the log up to the position; ``start`` is the history start of the partition.

    Raises ``BeyondHistory``, ``InFuture``, ``LogTooShort``, and ``CodecError`` for damaged batches.
    """
    walk = begin_walk(log, question, start)
    fold = _GroupFold(question.group_id)
    for head, data in walk.until_position():
        fold.apply(head, data)
    walk.check_whole()
    return GroupHistory(
        question.group_id, walk.position, fold.partition.latest, fold.partition.pending
    )


def begin_walk(log: LogReads, question: GroupQuestion, start: HistoryStart) -> GroupWalk:
    """The walk to a position of the log.

    Raises ``BeyondHistory``, ``InFuture`` and ``LogTooShort``.
    """
    check_within_history(question.as_of, start)
    _check_reached(log, question)
    return GroupWalk(log.read_log(question.partition, LogOffset(0)), question, start)


def check_within_history(as_of: AsOf, start: HistoryStart) -> None:
    """Raise ``BeyondHistory`` if the position is below the history start."""
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
    """Raise ``InFuture`` if the log has not reached the position.

    The timestamp of the last batch may be ahead of the wall clock, for example after an import.
    """
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
    """The highest base offset and the highest timestamp to include."""
    match as_of:
        case AsOfOffset(offset):
            return offset, _NEVER
        case AsOfTimestamp(timestamp_ms):
            return _NEVER, timestamp_ms
        case _:
            assert_never(as_of)


class BatchHead(NamedTuple):
    """The header fields needed of each batch. A log may have millions, so no more are read."""

    base_offset: int
    attributes: int
    last_delta: int
    max_timestamp: int
    producer_id: int
    records: int


_HEAD = struct.Struct(">q13xhi8xqq6xi")


def _read_head(data: bytes) -> BatchHead:
    if len(data) < _HEAD.size:
        raise TruncatedError(f"a batch of {len(data)} bytes has no whole header")
    return BatchHead._make(_HEAD.unpack_from(data))


class GroupWalk:
    """Iterates over the batches up to a position and tracks missing offsets around it."""

    def __init__(
        self, batches: Iterable[bytes], question: GroupQuestion, start: HistoryStart
    ) -> None:
        self._batches = iter(batches)
        self._question = question
        self._start = start
        self._last_ms = start.before_ms
        self._next_offset = int(start.offset)
        self.whole_from = start
        """The position after the last missing offset seen so far."""
        self._first_later: BatchHead | None = None
        self.position = LogPosition(question.partition, LogOffset(-1), -1)
        """The position of the last included batch; set when ``until_position`` is exhausted."""

    def until_position(self) -> Iterator[tuple[BatchHead, bytes]]:
        """Iterate over the batches to include, in offset order."""
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

    def _note(self, head: BatchHead) -> None:
        """Track whether offsets are missing before or within a batch."""
        next_offset = head.base_offset + head.last_delta + 1
        if head.base_offset > self._next_offset or head.records <= head.last_delta:
            before_ms = max(head.max_timestamp, self.whole_from.before_ms)
            self.whole_from = HistoryStart(LogOffset(next_offset), before_ms)
        self._next_offset = next_offset

    def check_whole(self) -> None:
        """Raise ``BeyondHistory`` if the state at the position may be incomplete.

        A cleaner that removes a record leaves an offset gap. If there is no gap up to the position,
        the state is complete. Otherwise the cleaner may have removed records that were superseded
        only after the position, unless the last gap lies before the position.
        """
        if self.whole_from == self._start or self._first_later is None:
            return
        self._note(self._first_later)
        for data in self._batches:
            head = _read_head(data)
            if head.base_offset >= self._question.end:
                break
            self._note(head)
        check_within_history(self._question.as_of, self.whole_from)


class _GroupFold:
    """A ``PartitionFold`` restricted to the records of one group."""

    def __init__(self, group_id: GroupId) -> None:
        name = group_id.encode()
        self._prefix = len(name).to_bytes(2, "big") + name
        """The bytes that follow the record type in every key of the group."""
        self.partition = PartitionFold()

    def apply(self, head: BatchHead, data: bytes) -> None:
        if head.attributes & CONTROL:
            if head.producer_id in self.partition.pending:
                self.partition.apply(data)
            return
        if not head.attributes & COMPRESSION and self._prefix not in data:
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
