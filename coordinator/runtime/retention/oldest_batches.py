"""The time at which each partition's oldest batch was appended to this log.

A batch written here has its own timestamp. An imported batch counts from the import, or from its
own timestamp if the import asked for no grace. A batch dated in the future is trimmed with the
batches before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from coordinator.runtime.clock import SteadyClock
from model.ids import LogPartition
from storage.codec.batches import read_batch_header
from storage.log.trim import read_history_start
from storage.log_store import LogStore


class OldestBatches:
    """The append times of the partitions whose first batch was read.

    ``imported_at_ms`` is the wall time of the last import, 0 for none.
    """

    def __init__(
        self,
        store: LogStore,
        clock: SteadyClock,
        history_ms: int,
        imported_at_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._clock = clock
        self._history_ms = history_ms
        self._imported_at_ms = imported_at_ms
        self._appended_ms: dict[LogPartition, int] = {}

    def get(self, partition: LogPartition) -> int | None:
        """When the partition's oldest batch was appended; ``None`` if unknown."""
        return self._appended_ms.get(partition)

    def compute_oldest_ms(self) -> int | None:
        """When the oldest batch of all partitions was appended."""
        return min(self._appended_ms.values(), default=None)

    def make_queue(self) -> list[tuple[int, LogPartition]]:
        """A heap of the partitions, oldest batch first."""
        queue = [(appended_ms, partition) for partition, appended_ms in self._appended_ms.items()]
        heapq.heapify(queue)
        return queue

    def read(self, partition: LogPartition) -> None:
        """Read the first batch of the partition."""
        start = read_history_start(self._store, partition).offset
        first = next(self._store.read_log(partition, start), None)
        if first is None:
            self.forget(partition)
        else:
            now_ms = self._clock.now().wall_ms
            self._appended_ms[partition] = self.compute_appended_ms(now_ms, first)

    def forget(self, partition: LogPartition) -> None:
        """Drop a partition that has no batch, or no batch to trim."""
        self._appended_ms.pop(partition, None)

    def compute_appended_ms(self, now_ms: int, batch: bytes) -> int:
        """When a batch was appended."""
        written_ms = read_batch_header(batch).max_timestamp
        if written_ms > now_ms:
            # No batch written here is dated in the future: this one is imported, its timestamp
            # meaningless.
            written_ms = now_ms - self._history_ms
        return max(written_ms, self._imported_at_ms())
