"""One step of trimming: drops a partition's oldest batches and rewrites the records still needed.

A thread decodes and encodes large batches.
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
"""How many bytes of old batches the loop decodes itself."""


class TrimSteps:
    """Does the steps one at a time and reports the trimmed bytes to ``sizes``."""

    def __init__(self, store: LogStore, scheduler: Scheduler, sizes: LogSizes) -> None:
        self._store = store
        self._scheduler = scheduler
        self._sizes = sizes
        self._waiting: dict[LogPartition, WaitingOffsets] = {}
        """Pending offsets of the trimmed partitions; only trimming changes this cache."""

    def forget(self, partition: LogPartition) -> None:
        """Drop the cache of a partition that is no longer trimmed."""
        self._waiting.pop(partition, None)

    def trim(self, partition: LogPartition, old: Sequence[bytes]) -> Paced[int]:
        """Trim the batches; returns the bytes removed.

        Raises ``StoreError``, and ``CodecError`` for damaged batches.
        """
        is_small = sum(map(len, old)) <= INLINE_BYTES
        batches = yield from self._compute(is_small, partial(decode_old, old))
        # Pending offsets are read once, not per step. Until this step is written they are ahead of
        # the store, so a failed step drops them.
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
