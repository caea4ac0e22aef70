"""Reads the log of a running server page by page, at a limited pace.

Pages come from the processes of ``history_reads``, so the event loop copies bytes and does nothing
else. All readings together have one budget, and only so many may be open.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, assert_never

from coordinator.runtime.as_of.history_reads import (
    HistoryBusy,
    HistoryError,
    HistoryReads,
    compute_not_read,
)
from coordinator.runtime.as_of.log_pages import (
    PAGE_BYTES,
    BeforeOffset,
    FromOffset,
    FromTime,
    LogPage,
    PageQuestion,
    PageStart,
)
from coordinator.runtime.as_of.reader_places import Holder
from model.errors import ErrorCode
from model.ids import GroupId, LogOffset, LogPartition
from storage.log.trim import HistoryStart, read_history_start
from storage.log_store import LogStore

READINGS_MAX: Final = 16
"""How many readings may be open, also those whose clients take nothing."""

_NO_LIMIT: Final = 1 << 62


class PositionNotReached(HistoryError):
    """The log ends before the position."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class LogRequest(NamedTuple):
    """What to read of a log partition; see ``log_pages.PageQuestion``.

    Ends before ``end``, by default at the durable end, and when the batches have ``bytes_max``.
    """

    partition: LogPartition
    start: PageStart
    end: LogOffset | None = None
    bytes_max: int = _NO_LIMIT
    group_id: GroupId | None = None
    is_compacted_wanted: bool = False


class PartitionDescription(NamedTuple):
    """How far a log partition goes."""

    partition: LogPartition
    history: HistoryStart
    end: LogOffset


class _Reading:
    """An open reading; ``on_lost`` makes it end."""

    __slots__ = ("on_lost",)

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self.on_lost = on_lost


class ReadBudget:
    """Makes all who spend wait, so that together they spend at most ``per_s`` in a second."""

    def __init__(
        self,
        per_s: int,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._per_s = per_s
        self._now = now
        self._sleep = sleep
        self._free_at = 0.0

    async def spend(self, amount: int) -> None:
        """Wait until as much is free again as was spent before this."""
        now = self._now()
        wait_s = max(0.0, self._free_at - now)
        self._free_at = max(now, self._free_at) + amount / self._per_s
        if wait_s:
            await self._sleep(wait_s)


class LogReads:
    """Readings of the log that ``history`` reads and ``store`` has open."""

    def __init__(self, history: HistoryReads, store: LogStore, budget: ReadBudget) -> None:
        self._history = history
        self._store = store
        self._budget = budget
        self._open: dict[Holder, deque[_Reading]] = {}

    @property
    def cluster_id(self) -> str:
        """That of the store."""
        return self._store.cluster_id

    @property
    def partitions(self) -> int:
        """How many log partitions there are."""
        return self._store.partitions

    def describe(self) -> Iterator[PartitionDescription]:
        """How far each log partition goes, now."""
        for number in map(LogPartition, range(self._store.partitions)):
            history = read_history_start(self._store, number)
            yield PartitionDescription(number, history, self.find_end(number))

    def find_end(self, partition: LogPartition) -> LogOffset:
        """The durable end of a log partition: what is above may still be lost."""
        return LogOffset(self._store.durable_offset(partition))

    @contextmanager
    def opened(self, holder: Holder, on_lost: Callable[[], None]) -> Iterator[None]:
        """Count a reading as open. Raises ``HistoryBusy`` instead at the limit.

        There, who has most makes room for who has fewer: ``on_lost`` of its first reading is
        called, which has to end it soon.
        """
        if sum(map(len, self._open.values())) >= READINGS_MAX and not self._make_room(holder):
            own = len(self._open.get(holder, ()))
            raise HistoryBusy(
                f"the log is being read {READINGS_MAX} times, {own} times by you: read a stream to "
                "its end or cancel it, or retry later"
            )
        reading = _Reading(on_lost)
        self._open.setdefault(holder, deque()).append(reading)
        try:
            yield
        finally:
            self._forget(holder, reading)

    def _make_room(self, holder: Holder) -> bool:
        most = max(self._open, key=lambda each: len(self._open[each]))
        if len(self._open.get(holder, ())) + 1 >= len(self._open[most]):
            return False
        reading = self._open[most][0]
        self._forget(most, reading)
        reading.on_lost()
        return True

    def _forget(self, holder: Holder, reading: _Reading) -> None:
        readings = self._open.get(holder)
        if readings is not None and reading in readings:
            readings.remove(reading)
            if not readings:
                del self._open[holder]

    async def read(self, request: LogRequest, holder: Holder = "") -> AsyncGenerator[LogPage, None]:
        """The pages of a request; the next one is read when it is asked for.

        Raises ``HistoryError`` and ``GroupError``, also between pages: trimming may overtake.
        """
        end = self._check_end(request)
        left, start = request.bytes_max, request.start
        while True:
            if not request.is_compacted_wanted:
                self._check_history(request.partition, start)
            bytes_max = min(left, PAGE_BYTES)
            question = PageQuestion(
                request.partition,
                start,
                end,
                request.group_id,
                request.is_compacted_wanted,
                bytes_max,
            )
            page = await self._history.read_page(question, holder)
            await self._budget.spend(page.scanned_bytes)
            # The process may have read an older snapshot, which had more.
            yield page._replace(history=read_history_start(self._store, request.partition))
            left -= len(page.batches)
            if page.next_offset >= end or left <= 0 or (page.is_full and bytes_max < PAGE_BYTES):
                return
            start = _compute_next(start, page)

    def _check_end(self, request: LogRequest) -> LogOffset:
        """Where the reading ends; raises ``PositionNotReached``."""
        durable = self.find_end(request.partition)
        end = durable if request.end is None else request.end
        furthest = end
        match request.start:
            case FromOffset(offset) | BeforeOffset(offset):
                furthest = max(end, offset)
            case FromTime():
                pass
            case _:
                assert_never(request.start)
        if furthest > durable:
            raise PositionNotReached(
                f"log partition {request.partition} ends at offset {durable}, before {furthest}",
                {"log_partition": str(request.partition), "end_offset": str(durable)},
            )
        return end

    def _check_history(self, partition: LogPartition, start: PageStart) -> None:
        """Raise ``PositionNotKept`` at once: a process may still read what was there before."""
        history = read_history_start(self._store, partition)
        match start:
            case FromOffset(offset):
                is_kept = offset >= history.offset
            case FromTime(timestamp_ms):
                is_kept = timestamp_ms > history.before_ms
            case BeforeOffset(offset):
                is_kept = offset > history.offset or not history.offset
            case _:
                assert_never(start)
        if not is_kept:
            raise compute_not_read(partition, history)


def _compute_next(start: PageStart, page: LogPage) -> PageStart:
    if isinstance(start, FromTime) and not page.batches:
        return FromTime(start.timestamp_ms, page.next_offset)
    return FromOffset(page.next_offset)
