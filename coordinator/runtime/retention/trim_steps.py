"""One step of trimming: the oldest batches of a partition go, and what of them holds is kept.

Large ones are decoded and encoded in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from coordinator.runtime.clock import Scheduler
from coordinator.runtime.loop.slices import Paced, compute_elsewhere
from coordinator.runtime.retention.log_sizes import LogSizes
from model.ids import LogPartition
from storage.codec.errors import CodecError
from storage.log.trim import compute_plan, compute_rewrite, decode_old, read_waiting
from storage.log.waiting_offsets import WaitingOffsets
from storage.log_store import LogStore

T = TypeVar("T")

INLINE_BYTES = 16 * 1024
"""Of old batches that are decoded on the loop."""


class TrimSteps:
    """Does one step after another, and tells ``sizes``."""

    def __init__(self, store: LogStore, scheduler: Scheduler, sizes: LogSizes) -> None:
        self._store = store
        self._scheduler = scheduler
        self._sizes = sizes
        self._waiting: dict[LogPartition, WaitingOffsets] = {}
        """Of the partitions that were trimmed: nobody else changes it."""

    def forget(self, partition: LogPartition) -> None:
        """It is not trimmed any more."""
        self._waiting.pop(partition, None)

    def trim(self, partition: LogPartition, old: Sequence[bytes]) -> Paced[int]:
        """How many bytes went. Raises ``StoreError``, and ``CodecError`` for damaged batches."""
        is_small = sum(map(len, old)) <= INLINE_BYTES
        batches = yield from self._compute(is_small, partial(decode_old, old))
        # What waits is read once, not with each step. Until this one is written it is ahead of the
        # store: of one that fails nothing is kept.
        waiting = self._waiting.pop(partition, None)
        if waiting is None:
            waiting = read_waiting(self._store, partition)
        plan = compute_plan(self._store, partition, batches, waiting)
        rewrite = yield from self._compute(is_small, partial(compute_rewrite, plan))
        size = sum(batch.size for batch in plan.old)
        kept = {**rewrite.kept, **self._sizes.pack_trimmed(partition, size)}
        self._store.rewrite(replace(rewrite, kept=kept))
        self._waiting[partition] = waiting
        self._sizes.note_trimmed(partition, size)
        return size

    def _compute(self, is_small: bool, work: Callable[[], T]) -> Paced[T]:
        if is_small:
            return work()
        found = yield from compute_elsewhere(self._scheduler.run_computing, work)
        if isinstance(found, BaseException):
            raise CodecError(str(found)) from found
        return found
