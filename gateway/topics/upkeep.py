"""Background work on the topic store's files: opening partitions after a start, compaction."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from coordinator.runtime.api import Coordinator
from gateway.topics.log.layout import make_durable
from gateway.topics.log.open_logs import PartitionLogs
from gateway.topics.topic_catalogue import PartitionKey, is_in_image
from model.errors import ErrorCode

_WARM_UP_SLICE_S = 0.002
_WARM_UP_PAUSE_S = 0.008
_log = logging.getLogger(__name__)


class Upkeep:
    """Background work in time slices too short to delay requests; skips deleted topics."""

    def __init__(
        self,
        logs: PartitionLogs,
        coordinator: Coordinator,
        worker: ThreadPoolExecutor,
        wall_ms: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._coordinator = coordinator
        self._worker = worker
        self._wall_ms = wall_ms
        self._warm_up: asyncio.Task[None] | None = None
        self._to_compact: dict[PartitionKey, None] = {}
        self._compaction: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start opening every partition that has files."""
        self._warm_up = asyncio.create_task(self._open_all(), name="topics-warm-up")

    def stop(self) -> None:
        """Cancel the unfinished work."""
        for task in (self._warm_up, self._compaction):
            if task is not None:
                task.cancel()

    async def _open_all(self) -> None:
        """Open every partition that has files, in time slices."""
        slice_end = time.monotonic() + _WARM_UP_SLICE_S
        for key in self._logs.partitions():
            try:
                for _ in chain(self._logs.open_in_steps(key), (None,)):
                    if time.monotonic() < slice_end:
                        continue
                    await asyncio.sleep(_WARM_UP_PAUSE_S)
                    slice_end = time.monotonic() + _WARM_UP_SLICE_S
                    if not is_in_image(self._coordinator.image, key):
                        break
            except OSError as error:
                note_io_error(key, error)

    def compact_soon(self, key: PartitionKey) -> None:
        """Queue a partition for compaction."""
        self._to_compact[key] = None
        if self._compaction is None or self._compaction.done():
            self._compaction = asyncio.create_task(self._compact_all(), name="topics-compaction")

    async def _compact_all(self) -> None:
        """Compact the queued partitions one after another, in time slices."""
        while self._to_compact:
            key = next(iter(self._to_compact))
            try:
                await self._compact(key)
            except OSError as error:
                note_io_error(key, error)
            del self._to_compact[key]

    async def _compact(self, key: PartitionKey) -> None:
        loop = asyncio.get_running_loop()
        slice_end = time.monotonic() + _WARM_UP_SLICE_S
        for to_sync in self._logs.compact_in_steps(key, self._wall_ms()):
            if to_sync is not None:
                await loop.run_in_executor(self._worker, make_durable, to_sync)
            elif time.monotonic() < slice_end:
                continue
            else:
                await asyncio.sleep(_WARM_UP_PAUSE_S)
            slice_end = time.monotonic() + _WARM_UP_SLICE_S
            if not is_in_image(self._coordinator.image, key):
                return


def note_io_error(key: PartitionKey, error: OSError) -> ErrorCode:
    """Log an I/O error; return the error code for clients."""
    _log.error("topic %s, partition %d: %s", key.topic_id.hex(), key.partition, error)
    return ErrorCode.KAFKA_STORAGE_ERROR
