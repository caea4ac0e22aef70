"""Trims the log in the background to its maximum age and size.

A step takes the oldest batches of the partition whose history starts earliest. Only batches below a
watermark that is on disk are trimmed, because a restart accepts gaps only there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import structlog

from coordinator.runtime.clock import Scheduler, SteadyClock
from coordinator.runtime.loop.slices import (
    PAUSE_MS,
    STALL_RETRY_MS,
    Paced,
    Slices,
    compute_elsewhere,
    spend,
)
from coordinator.runtime.loop.stats import Stats
from coordinator.runtime.retention.ledger_trimming import SLICE as LEDGER_SLICE
from coordinator.runtime.retention.ledger_trimming import LedgerTrimming
from coordinator.runtime.retention.log_sizes import LogSizes
from coordinator.runtime.retention.oldest_batches import OldestBatches
from coordinator.runtime.retention.trim_steps import TrimSteps
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition
from storage.codec.errors import CodecError
from storage.log.trim import compute_trim_limit, read_old
from storage.log_store import LogStore, StoreError, StoreFailed, StoreStalled

log = structlog.get_logger()

_Queue: TypeAlias = list[tuple[int, LogPartition]]
"""A heap of partitions, ordered by the append time of their oldest batch."""

STEP_BYTES = 64 * 1024
"""How many bytes of old batches one step takes."""
BEHIND_STEP_BYTES = 2 * STEP_BYTES
"""The same while trimming is behind. Records that a step must keep are then rewritten less
often."""
BEHIND_SHARE = 4
"""Trimming is behind once the log exceeds its limit by one part in this many."""
SLICE_BYTES = 256 * 1024
"""How many bytes of batches are measured per event-loop iteration."""
SURVEY_SLICE = 50
STALLED_MS = 10 * STALL_RETRY_MS
"""Wait after the store stalled. A step is recomputed then, and is never urgent."""
BUSY_SHARE = 4
"""After a step, trimming pauses for the step's duration times this minus one."""


class LogTrimming:
    """Enforces ``log.history.ms`` and ``log.history.bytes`` at a fixed interval.

    ``imported_at_ms`` is the wall time of the last import, 0 for none. ``exists`` says whether a
    group is there. ``on_failure`` handles a write whose outcome is unknown.
    """

    def __init__(
        self,
        store: LogStore,
        scheduler: Scheduler,
        slices: Slices,
        clock: SteadyClock,
        stats: Stats,
        settings: CoordinatorSettings,
        *,
        imported_at_ms: Callable[[], int],
        exists: Callable[[GroupId], bool],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._slices = slices
        self._clock = clock
        self._stats = stats
        self._settings = settings
        self._on_failure = on_failure
        self.sizes = LogSizes(store)
        self._oldest = OldestBatches(store, clock, settings.log_history_ms, imported_at_ms)
        self._steps = TrimSteps(store, scheduler, self.sizes)
        self._ledger = LedgerTrimming(
            store,
            settings.log_history_ms,
            oldest_ms=self._oldest.get,
            exists=exists,
            written=lambda: stats.ledger_entries,
        )
        self._left: set[LogPartition] = set()
        """Partitions that are no longer trimmed, because they need an operator."""
        self._was_behind = False

    def begin(self) -> None:
        """Measure the log found at start; the first check is one interval later."""
        self._slices.run(self._keep_looking())

    def _keep_looking(self) -> Paced[None]:
        try:
            yield from _walk(self.sizes.measure(), SLICE_BYTES)
            while True:
                yield self._settings.log_history_check_interval_ms
                durable = self._read_durable_offsets()
                sync = self._store.sync_watermark
                synced = yield from compute_elsewhere(self._scheduler.run_blocking, sync)
                if isinstance(synced, BaseException):
                    self._give_up(synced)
                    return
                yield from _walk(self._survey(), SURVEY_SLICE)
                while not (yield from self._trim_all(durable)):
                    yield STALLED_MS
                self._note_age()
                with suppress(StoreStalled):
                    ledger = self._ledger.trim(self._clock.now().wall_ms)
                    yield from _walk(ledger, LEDGER_SLICE)
        except (StoreError, CodecError) as error:
            self._give_up(error)

    def _read_durable_offsets(self) -> list[int]:
        partitions = map(LogPartition, range(self._store.partitions))
        return [int(self._store.durable_offset(partition)) for partition in partitions]

    def _survey(self) -> Iterator[int]:
        for partition in self.sizes.find_filled():
            if self._oldest.get(partition) is None:
                yield 1
                try:
                    self._oldest.read(partition)
                except (StoreError, CodecError) as error:
                    self._leave(partition, error)

    def _trim_all(self, durable: Sequence[int]) -> Paced[bool]:
        """Trim every batch past the limits; ``False`` if the store stalled."""
        queue = self._oldest.make_queue()
        try:
            while True:
                began_ms = self._clock.monotonic_ms()
                picked = self._pick(queue, durable)
                if picked is None:
                    break
                partition, old = picked
                is_trimmed = yield from self._trim(partition, old)
                appended_ms = self._oldest.get(partition)
                if appended_ms is not None:
                    heapq.heappush(queue, (appended_ms, partition))
                yield self._compute_rest_ms(began_ms) if is_trimmed else PAUSE_MS
            self.sizes.save()
        except StoreStalled:
            return False
        return True

    def _pick(
        self, queue: _Queue, durable: Sequence[int]
    ) -> tuple[LogPartition, list[bytes]] | None:
        """The oldest batches past the limits, and their partition."""
        now_ms = self._clock.now().wall_ms
        horizon_ms = now_ms - self._settings.log_history_ms
        excess = self._compute_excess()
        while queue:
            head_ms, partition = queue[0]
            if head_ms > horizon_ms and excess <= 0:
                return None
            heapq.heappop(queue)
            if partition in self._left:
                continue
            step_bytes = BEHIND_STEP_BYTES if self._is_behind() else STEP_BYTES
            appended_ms = partial(self._oldest.compute_appended_ms, now_ms)
            is_old = _Age(appended_ms, horizon_ms, excess)
            try:
                limit = min(durable[partition], compute_trim_limit(self._store, partition))
                old = read_old(self._store, partition, limit, step_bytes, is_old)
            except StoreStalled:
                raise
            except (StoreError, CodecError) as error:
                self._leave(partition, error)
                continue
            if old:
                return partition, old
        return None

    def _trim(self, partition: LogPartition, old: Sequence[bytes]) -> Paced[bool]:
        """Do one step. An error excludes the partition from trimming and returns ``False``."""
        try:
            size = yield from self._steps.trim(partition, old)
            self._stats.history_trimmed_bytes += size
            self._oldest.read(partition)
        except StoreStalled:
            raise
        except (StoreError, CodecError) as error:
            self._leave(partition, error)
            return False
        self._stats.history_bytes = self.sizes.total
        return True

    def _compute_rest_ms(self, began_ms: int) -> int:
        took_ms = self._clock.monotonic_ms() - began_ms
        return max(PAUSE_MS, 0 if self._is_behind() else (BUSY_SHARE - 1) * took_ms)

    def _compute_excess(self) -> int:
        return self.sizes.total - self._settings.log_history_bytes

    def _is_behind(self) -> bool:
        """Whether the log grows faster than trimming with pauses shrinks it. Warns once.

        Trimming stays behind until the log is back within its limit.
        """
        most = self._settings.log_history_bytes
        is_behind = self._compute_excess() * BEHIND_SHARE > (0 if self._was_behind else most)
        if is_behind and not self._was_behind:
            log.warning("history_behind", bytes=self.sizes.total, wanted_bytes=most)
        self._was_behind = is_behind
        return is_behind

    def _note_age(self) -> None:
        self._stats.history_bytes = self.sizes.total
        oldest_ms = self._oldest.compute_oldest_ms()
        now_ms = self._clock.now().wall_ms
        self._stats.history_age_ms = 0 if oldest_ms is None else max(now_ms - oldest_ms, 0)

    def _give_up(self, error: BaseException) -> None:
        """Stop trimming; an operator must repair the log."""
        if isinstance(error, StoreFailed):
            self._on_failure(error)
            return
        self._stats.history_partitions_left = self._store.partitions
        log.error("history_not_trimmed", cause=str(error))

    def _leave(self, partition: LogPartition, error: BaseException) -> None:
        """Exclude one partition from trimming; the others go on."""
        if isinstance(error, StoreFailed):
            self._on_failure(error)
        self._left.add(partition)
        self._steps.forget(partition)
        self._oldest.forget(partition)
        self._stats.history_partitions_left = len(self._left)
        log.error("history_not_trimmed", partition=partition, cause=str(error))


def _walk(walk: Iterator[int], budget: int) -> Paced[None]:
    while spend(walk, budget):
        yield PAUSE_MS


class _Age:
    """Whether each batch, oldest first, is past the horizon or part of the excess bytes."""

    def __init__(self, appended_ms: Callable[[bytes], int], horizon_ms: int, excess: int) -> None:
        self._appended_ms = appended_ms
        self._horizon_ms = horizon_ms
        self._excess = excess

    def __call__(self, batch: bytes) -> bool:
        is_old = self._excess > 0 or self._appended_ms(batch) <= self._horizon_ms
        self._excess -= len(batch)
        return is_old
