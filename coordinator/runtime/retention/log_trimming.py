"""How much of the log is kept: what is too old or too much is trimmed in the background.

The history counts from when a batch was appended here. A batch that was written here has that
time; one that was imported counts from the import, or where no grace was asked for from its own.
One that is dated ahead then goes with those before it.

A step takes the oldest batches of the partition whose history begins the longest ago. Large ones
are decoded and encoded in a thread. What is trimmed lies below a watermark that is on the disk:
only there may a restart find gaps.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import structlog

from coordinator.runtime.clock import Scheduler, SteadyClock
from coordinator.runtime.loop.stats import Stats
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import LogPartition
from storage.codec.batches import Batch, read_batch_header
from storage.codec.errors import CodecError
from storage.log.trim import (
    Measure,
    TrimPlan,
    compute_plan,
    compute_rewrite,
    compute_trim_limit,
    decode_old,
    pack_measure,
    read_history_start,
    read_measure,
    read_old,
    read_waiting,
)
from storage.log.waiting_offsets import WaitingOffsets
from storage.log_store import (
    LogStore,
    PartitionAppend,
    PartitionRewrite,
    StoreError,
    StoreFailed,
    StoreStalled,
    read_batch_range,
)

log = structlog.get_logger()

STEP_BYTES = 64 * 1024
"""Of old batches that one step takes."""
BEHIND_STEP_BYTES = 2 * STEP_BYTES
"""The same while trimming is behind: what a step writes again it writes once for all that goes."""
BEHIND_SHARE = 4
"""Trimming is behind where there is so much more than is to be kept, a fourth part."""
INLINE_BYTES = 16 * 1024
"""Of old batches that are decoded on the loop."""
SLICE_BYTES = 256 * 1024
"""Of batches that are measured in one turn."""
SURVEY_SLICE = 50
PAUSE_MS = 5
STALL_RETRY_MS = 50
BUSY_SHARE = 4
"""After a step that took some time the loop has this many times as much, less one, for others."""


class History:
    """Keeps ``log.history.ms`` and ``log.history.bytes``; looks at that every so often.

    ``imported_at_ms`` is the wall time of the last import, 0 for none. ``on_failure`` is for a
    write of which nobody knows what became of it.
    """

    def __init__(
        self,
        store: LogStore,
        scheduler: Scheduler,
        clock: SteadyClock,
        stats: Stats,
        settings: CoordinatorSettings,
        *,
        imported_at_ms: Callable[[], int],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._clock = clock
        self._stats = stats
        self._history_ms = settings.log_history_ms
        self._bytes_max = settings.log_history_bytes
        self._interval_ms = settings.log_history_check_interval_ms
        self._imported_at_ms = imported_at_ms
        self._on_failure = on_failure
        self._partitions = [LogPartition(number) for number in range(store.partitions)]
        self._found_ends = [store.next_offset(partition) for partition in self._partitions]
        self._bytes = [0] * store.partitions
        """Of batches from the history start of each partition on."""
        self._total_bytes = 0
        self._unsaved: set[LogPartition] = set()
        self._heads: dict[LogPartition, int] = {}
        """When the oldest batch of each history was appended, where that is known."""
        self._queue: list[tuple[int, LogPartition]] = []
        self._durable: list[int] = []
        self._waiting: dict[LogPartition, WaitingOffsets] = {}
        """Of the partitions that were trimmed: nobody else changes it."""
        self._planned: WaitingOffsets | None = None
        """Of the step that is under way: it is ahead of the store until that is written."""
        self._left: set[LogPartition] = set()
        """What is wrong with these others must see to: they are not trimmed any more."""
        self._was_behind = False
        self._is_stopped = False

    def begin(self) -> None:
        """Measure what was found; the first look is one interval after that."""
        self._drive(self._measure(), SLICE_BYTES, self._wait)

    def stop(self) -> None:
        """Nothing is trimmed any more."""
        self._is_stopped = True

    def note(self, appends: Sequence[PartitionAppend]) -> None:
        """These were written."""
        for append in appends:
            size = len(append.batch)
            self._bytes[append.partition] += size
            self._total_bytes += size
            self._unsaved.add(append.partition)

    # ------------------------------------------------------------------------- walks in slices

    def _drive(self, walk: Iterator[int], budget: int, then: Callable[[], None]) -> None:
        """Go on with a walk that yields its costs, a budget in each turn."""
        if self._is_stopped:
            return
        left = budget
        try:
            for cost in walk:
                left -= cost
                if left <= 0:
                    go_on = partial(self._drive, walk, budget, then)
                    self._scheduler.call_later_ms(PAUSE_MS, go_on)
                    return
        except (StoreError, CodecError) as error:
            self._give_up(error)
            return
        then()

    def _measure(self) -> Iterator[int]:
        """Adds up what was there before this process: most of it another has measured."""
        for partition in self._partitions:
            yield 1
            end = self._found_ends[partition]
            measure = read_measure(self._store, partition)
            self._count(partition, measure.size)
            if measure.end >= end:
                continue
            for batch in self._store.read_log(partition, measure.end):
                if read_batch_range(batch)[0] >= end:
                    break
                self._count(partition, len(batch))
                yield len(batch)

    def _survey(self) -> Iterator[int]:
        for partition in self._partitions:
            if self._bytes[partition] and partition not in self._heads:
                yield 1
                try:
                    self._read_head(partition)
                except (StoreError, CodecError) as error:
                    self._leave(partition, error)

    def _read_head(self, partition: LogPartition) -> None:
        start = read_history_start(self._store, partition).offset
        first = next(self._store.read_log(partition, start), None)
        if first is None:
            self._heads.pop(partition, None)
        else:
            now_ms = self._clock.now().wall_ms
            self._heads[partition] = self._compute_appended_ms(now_ms, first)

    def _compute_appended_ms(self, now_ms: int, batch: bytes) -> int:
        written_ms = read_batch_header(batch).max_timestamp
        if written_ms > now_ms:
            # Nothing that was written here is: it was imported, and its time says nothing.
            written_ms = now_ms - self._history_ms
        return max(written_ms, self._imported_at_ms())

    def _count(self, partition: LogPartition, size: int) -> None:
        self._bytes[partition] += size
        self._total_bytes += size
        self._unsaved.add(partition)

    # -------------------------------------------------------------------------------- one look

    def _check(self) -> None:
        if self._is_stopped:
            return
        durable = [int(self._store.durable_offset(partition)) for partition in self._partitions]
        synced = partial(self._on_watermark_synced, durable)
        self._scheduler.run_blocking(self._store.sync_watermark, synced)

    def _on_watermark_synced(self, durable: list[int], result: BaseException | None) -> None:
        if isinstance(result, BaseException):
            self._give_up(result)
            return
        self._durable = durable
        self._drive(self._survey(), SURVEY_SLICE, self._begin_trimming)

    def _begin_trimming(self) -> None:
        self._queue = [(head_ms, partition) for partition, head_ms in self._heads.items()]
        heapq.heapify(self._queue)
        self._trim_next()

    def _trim_next(self) -> None:
        if self._is_stopped:
            return
        began_ms = self._clock.monotonic_ms()
        try:
            picked = self._pick()
            if picked is None:
                self._end_look()
                return
        except StoreStalled:
            self._scheduler.call_later_ms(STALL_RETRY_MS, self._begin_trimming)
            return
        except (StoreError, CodecError) as error:
            self._give_up(error)
            return
        partition, old = picked
        if sum(map(len, old)) <= INLINE_BYTES:
            self._try(partition, lambda: self._trim_inline(began_ms, partition, old))
            return
        decoded = partial(self._on_decoded, began_ms, partition)
        self._scheduler.run_computing(partial(decode_old, old), decoded)

    def _trim_inline(self, began_ms: int, partition: LogPartition, old: Sequence[bytes]) -> None:
        plan = self._compute_plan(partition, decode_old(old))
        self._write(began_ms, plan, compute_rewrite(plan))

    def _try(self, partition: LogPartition, work: Callable[[], None]) -> None:
        """A part of a step; what is wrong with the partition ends the step."""
        try:
            work()
        except StoreStalled:
            self._scheduler.call_later_ms(STALL_RETRY_MS, self._begin_trimming)
        except (StoreError, CodecError) as error:
            self._skip(partition, error)

    def _pick(self) -> tuple[LogPartition, list[bytes]] | None:
        """The oldest batches that are too old or too much, and their partition."""
        now_ms = self._clock.now().wall_ms
        horizon_ms = now_ms - self._history_ms
        excess = self._total_bytes - self._bytes_max
        while self._queue:
            head_ms, partition = self._queue[0]
            if head_ms > horizon_ms and excess <= 0:
                return None
            heapq.heappop(self._queue)
            if partition in self._left:
                continue
            step_bytes = BEHIND_STEP_BYTES if self._is_behind() else STEP_BYTES
            appended_ms = partial(self._compute_appended_ms, now_ms)
            is_old = _Age(appended_ms, horizon_ms, excess)
            try:
                limit = min(self._durable[partition], compute_trim_limit(self._store, partition))
                old = read_old(self._store, partition, limit, step_bytes, is_old)
            except StoreStalled:
                raise
            except (StoreError, CodecError) as error:
                self._leave(partition, error)
                continue
            if old:
                return partition, old
        return None

    def _on_decoded(
        self, began_ms: int, partition: LogPartition, result: list[Batch] | BaseException
    ) -> None:
        if self._is_stopped:
            return
        if isinstance(result, BaseException):
            self._skip(partition, result)
            return

        def plan_it() -> None:
            plan = self._compute_plan(partition, result)
            encoded = partial(self._on_encoded, began_ms, plan)
            self._scheduler.run_computing(partial(compute_rewrite, plan), encoded)

        self._try(partition, plan_it)

    def _compute_plan(self, partition: LogPartition, old: Sequence[Batch]) -> TrimPlan:
        """What waits is read once, not with each step; it holds again when the step is written."""
        waiting = self._waiting.pop(partition, None)
        self._planned = read_waiting(self._store, partition) if waiting is None else waiting
        return compute_plan(self._store, partition, old, self._planned)

    def _on_encoded(
        self, began_ms: int, plan: TrimPlan, result: PartitionRewrite | BaseException
    ) -> None:
        if self._is_stopped:
            return
        if isinstance(result, BaseException):
            self._skip(plan.partition, result)
            return
        self._try(plan.partition, lambda: self._write(began_ms, plan, result))

    def _write(self, began_ms: int, plan: TrimPlan, rewrite: PartitionRewrite) -> None:
        partition = plan.partition
        size = sum(batch.size for batch in plan.old)
        measure = Measure(self._store.next_offset(partition), self._bytes[partition] - size)
        kept = {**rewrite.kept, **pack_measure(measure)}
        self._store.rewrite(replace(rewrite, kept=kept))
        if self._planned is not None:
            self._waiting[partition], self._planned = self._planned, None
        self._bytes[partition] -= size
        self._total_bytes -= size
        self._unsaved.discard(partition)
        self._stats.history_trimmed_bytes += size
        self._read_head(partition)
        head_ms = self._heads.get(partition)
        if head_ms is not None:
            heapq.heappush(self._queue, (head_ms, partition))
        self._stats.history_bytes = self._total_bytes
        took_ms = self._clock.monotonic_ms() - began_ms
        rest_ms = 0 if self._is_behind() else (BUSY_SHARE - 1) * took_ms
        self._scheduler.call_later_ms(max(PAUSE_MS, rest_ms), self._trim_next)

    def _is_behind(self) -> bool:
        """Whether the log grows faster than it is trimmed with rests. Says so, once.

        Who is behind is so until there is no more than is to be kept.
        """
        excess = self._total_bytes - self._bytes_max
        is_behind = excess * BEHIND_SHARE > (0 if self._was_behind else self._bytes_max)
        if is_behind and not self._was_behind:
            log.warning("history_behind", bytes=self._total_bytes, wanted_bytes=self._bytes_max)
        self._was_behind = is_behind
        return is_behind

    def _end_look(self) -> None:
        for partition in sorted(self._unsaved):
            measure = Measure(self._store.next_offset(partition), self._bytes[partition])
            self._store.rewrite(PartitionRewrite(partition, (), (), pack_measure(measure)))
        self._unsaved.clear()
        self._stats.history_bytes = self._total_bytes
        oldest_ms = min(self._heads.values(), default=None)
        now_ms = self._clock.now().wall_ms
        self._stats.history_age_ms = 0 if oldest_ms is None else max(now_ms - oldest_ms, 0)
        self._wait()

    def _wait(self) -> None:
        self._scheduler.call_later_ms(self._interval_ms, self._check)

    def _give_up(self, error: BaseException) -> None:
        """The log is left as it is; what is wrong with it others must see to."""
        if isinstance(error, StoreFailed):
            self._on_failure(error)
            return
        self._is_stopped = True
        self._stats.history_partitions_left = len(self._partitions)
        log.error("history_not_trimmed", cause=str(error))

    def _skip(self, partition: LogPartition, error: BaseException) -> None:
        self._leave(partition, error)
        self._scheduler.call_later_ms(PAUSE_MS, self._trim_next)

    def _leave(self, partition: LogPartition, error: BaseException) -> None:
        """The partition is left as it is, and the others are trimmed."""
        if isinstance(error, StoreFailed):
            self._on_failure(error)
        self._left.add(partition)
        self._waiting.pop(partition, None)
        self._heads.pop(partition, None)
        self._stats.history_partitions_left = len(self._left)
        log.error("history_not_trimmed", partition=partition, cause=str(error))


class _Age:
    """Whether one batch after another is older than the horizon, or within the excess of bytes."""

    def __init__(self, appended_ms: Callable[[bytes], int], horizon_ms: int, excess: int) -> None:
        self._appended_ms = appended_ms
        self._horizon_ms = horizon_ms
        self._excess = excess

    def __call__(self, batch: bytes) -> bool:
        is_old = self._excess > 0 or self._appended_ms(batch) <= self._horizon_ms
        self._excess -= len(batch)
        return is_old
