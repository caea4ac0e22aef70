"""One group at a position in the past: its records, folded from the partition's log.

The log is streamed and only the group's records are kept. Batches are told apart by their bytes
first, so that those of other groups are not decoded.

A position can be answered from the history start on (``storage.trim``). A log that came from Kafka
may have been compacted there, which shows by offsets that are missing: of such a log the positions
behind the last missing offset are answered, and those before which none is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol, assert_never

from model.as_of import AsOf, AsOfOffset, AsOfTimestamp, LogPosition
from model.ids import GroupId, LogOffset, LogPartition
from model.value import value
from storage.codec.batches import BatchHeader, decode_batch, read_batch_header
from storage.compression import decompress
from storage.fold import PartitionFold
from storage.log_store import LatestEntry
from storage.trim import NO_HISTORY_START, HistoryStart


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
    for header, data in walk.until_position():
        fold.apply(header, data)
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
        last = replace(last, timestamp_ms=read_batch_header(data).max_timestamp)
    match question.as_of:
        case AsOfOffset(offset):
            is_future = offset >= end
        case AsOfTimestamp(timestamp_ms):
            is_future = timestamp_ms > max(question.now_ms, last.timestamp_ms)
        case _:
            assert_never(question.as_of)
    if is_future:
        raise InFuture(last)


class _Walk:
    """The batches up to a position, and what is missing before it and behind it."""

    def __init__(
        self, batches: Iterable[bytes], question: GroupQuestion, start: HistoryStart
    ) -> None:
        self.position = LogPosition(
            question.partition, LogOffset(start.offset - 1), start.before_ms
        )
        self._batches = iter(batches)
        self._question = question
        self._start = start
        self._next_offset = int(start.offset)
        self._whole_from = start
        """Behind the last missing offset that was met."""
        self._first_later: BatchHeader | None = None

    def until_position(self) -> Iterator[tuple[BatchHeader, bytes]]:
        """The batches that count, in their order."""
        for data in self._batches:
            header = read_batch_header(data)
            if header.base_offset >= self._question.end:
                return
            if header.base_offset >= self._start.offset:
                if self._is_later(header):
                    self._first_later = header
                    return
                self._note(header)
                last_ms = max(header.max_timestamp, self.position.timestamp_ms)
                self.position = LogPosition(
                    self._question.partition, LogOffset(header.last_offset), last_ms
                )
            yield header, data

    def _is_later(self, header: BatchHeader) -> bool:
        match self._question.as_of:
            case AsOfOffset(offset):
                return header.base_offset > offset
            case AsOfTimestamp(timestamp_ms):
                return header.max_timestamp > timestamp_ms
            case other:
                assert_never(other)

    def _note(self, header: BatchHeader) -> None:
        """Sees whether offsets are missing before a batch, or in it."""
        is_whole = header.count == header.last_offset - header.base_offset + 1
        if header.base_offset > self._next_offset or not is_whole:
            before_ms = max(header.max_timestamp, self._whole_from.before_ms)
            self._whole_from = HistoryStart(LogOffset(header.last_offset + 1), before_ms)
        self._next_offset = header.last_offset + 1

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
            header = read_batch_header(data)
            if header.base_offset >= self._question.end:
                break
            self._note(header)
        check_within_history(self._question.as_of, self._whole_from)


class _GroupFold:
    """``PartitionFold`` of the records of one group."""

    def __init__(self, group_id: GroupId) -> None:
        name = group_id.encode()
        self._prefix = len(name).to_bytes(2, "big") + name
        """What follows the type in each key of the group."""
        self.partition = PartitionFold()

    def apply(self, header: BatchHeader, data: bytes) -> None:
        if header.is_control:
            if header.producer_id in self.partition.pending:
                self.partition.apply(data)
            return
        if not header.compression and self._prefix not in data:
            return
        batch = decode_batch(data, decompress=decompress)
        records = tuple(
            record
            for record in batch.records
            if record.key is not None and record.key.startswith(self._prefix, 2)
        )
        if records:
            self.partition.apply_batch(replace(batch, records=records))
