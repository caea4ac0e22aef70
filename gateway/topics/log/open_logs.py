"""The open partitions of the store, and the size limit of all partitions together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from coordinator.runtime.loop.slices import Steps
from gateway.topics.log.byte_ledger import SegmentKey, SegmentLedger
from gateway.topics.log.compaction import compact_in_steps
from gateway.topics.log.layout import SegmentFile, compute_partition_path
from gateway.topics.log.open_files import OpenFiles
from gateway.topics.log.partition_log import PartitionLog
from gateway.topics.log.policies import COMPACT
from gateway.topics.log.segment import Segment
from gateway.topics.settings import TopicSettings
from gateway.topics.topic_catalogue import PartitionKey
from model.ids import TopicId

_DROPPED_AT_ONCE = 10
_log = logging.getLogger(__name__)


class _Opening(NamedTuple):
    """A partition that is being opened, and its remaining steps."""

    log: PartitionLog
    steps: Steps[None]


class PartitionLogs:
    """The partitions of the store; each is opened on first use and stays open, unlike its files."""

    def __init__(
        self,
        folder: Path,
        settings: TopicSettings,
        end_offset_of: Callable[[PartitionKey], int],
        policy_of: Callable[[TopicId], str],
        on_complete: Callable[[Path], object],
        on_superseded: Callable[[PartitionKey], None],
    ) -> None:
        """``end_offset_of`` returns a lower bound of a partition's end offset, ``policy_of`` a
        topic's cleanup policy. ``on_complete`` is called with each completed segment file,
        ``on_superseded`` with each partition that needs compaction.
        """
        self._folder = folder
        self._settings = settings
        self._end_offset_of = end_offset_of
        self._policy_of = policy_of
        self._on_complete = on_complete
        self._on_superseded = on_superseded
        self._files = OpenFiles(settings.gateway_topics_open_files)
        self._logs: dict[PartitionKey, PartitionLog] = {}
        self._opening: dict[PartitionKey, _Opening] = {}
        self._written: set[TopicId] = set()
        self._ledger = SegmentLedger()

    def get(self, key: PartitionKey) -> PartitionLog | None:
        """The partition if it is open."""
        return self._logs.get(key)

    def open_in_steps(self, key: PartitionKey) -> Steps[None]:
        """Open a partition unless it is open. Raises ``OSError``.

        Concurrent callers share the work. Before each step the caller must check that the topic
        still exists: otherwise a removed partition would be opened again.
        """
        while key not in self._logs:
            opening = self._opening.get(key)
            if opening is None:
                opening = self._opening[key] = self._begin(key)
            try:
                is_open = next(opening.steps, opening) is opening
            except OSError:
                del self._opening[key]
                raise
            if is_open:
                del self._opening[key]
                self._install(key, opening.log)
            else:
                yield

    def _begin(self, key: PartitionKey) -> _Opening:
        folder = compute_partition_path(self._folder, key)
        log = PartitionLog(folder, self._files, self._settings, self._end_offset_of(key))
        return _Opening(log, log.recover())

    def _install(self, key: PartitionKey, log: PartitionLog) -> None:
        for segment in log.segments:
            if segment.size and (key, segment.base_offset) not in self._ledger:
                self._ledger.add((key, segment.base_offset), segment.size)
        self._logs[key] = log

    def add_found(self, found: Iterable[SegmentFile]) -> None:
        """Count the files of partitions that are not open yet."""
        for file in sorted(found, key=lambda file: file.written_ns):
            self._written.add(file.key.topic_id)
            if file.key not in self._logs:
                self._ledger.add((file.key, file.base_offset), file.size)

    def is_written(self, topic_id: TopicId) -> bool:
        """Whether there are files of the topic, or have been since the start."""
        return topic_id in self._written

    def partitions(self) -> list[PartitionKey]:
        """The partitions that have segments, open or not."""
        return self._ledger.partitions()

    def make_room(self, key: PartitionKey, size: int) -> Steps[None]:
        """Delete the least recently written segments until ``size`` more bytes fit the limit.

        In steps, because partitions may have to be opened first, and there may be many small
        segments. The newest segment of ``key``, which is written next, stays.
        """
        while self._ledger.total + size > self._settings.gateway_topics_total_bytes:
            oldest = self._find_oldest_but(key)
            if oldest is None:
                return
            try:
                for _ in self.open_in_steps(oldest[0]):
                    yield
                    if oldest not in self._ledger:
                        break
            except OSError as error:
                _log_failure(oldest[0], error)
                self._ledger.remove(oldest)
            if oldest in self._ledger:
                self._drop_until(oldest)
            yield

    def _find_oldest_but(self, key: PartitionKey) -> SegmentKey | None:
        """The oldest segment that may be deleted, except the newest one of this partition."""
        log = self._logs.get(key)
        newest = log.segments[-1].base_offset if log is not None and log.segments else None
        return self._ledger.oldest(
            lambda found: found == (key, newest) or self._is_compacted(found)
        )

    def on_append(self, key: PartitionKey, log: PartitionLog, size: int) -> None:
        """Count appended bytes, and apply retention, compaction and the total limit.

        ``make_room`` has left little to delete for the total limit; it deletes the rest next time.
        """
        newest = log.segments[-1]
        self._written.add(key.topic_id)
        self._ledger.add((key, newest.base_offset), size)
        if newest.size == size and len(log.segments) > 1:
            self._on_complete(log.segments[-2].path)
            if not self._is_compacted((key, newest.base_offset)):
                self._drop(key, log.apply_retention())
            elif log.closed_bytes >= max(
                self._settings.gateway_topics_retention_bytes, 2 * log.compacted_bytes
            ):
                self._on_superseded(key)
        for _ in range(_DROPPED_AT_ONCE):
            oldest = self._ledger.oldest(self._is_compacted)
            is_over = self._ledger.total > self._settings.gateway_topics_total_bytes
            if oldest is None or not is_over or oldest[0] not in self._logs:
                break
            self._drop_until(oldest)

    def compact_in_steps(self, key: PartitionKey, now_ms: int) -> Iterator[Path | None]:
        """Compact a partition (``gateway.topics.log.compaction``); raises ``OSError``."""
        for _ in self.open_in_steps(key):
            yield None
        log = self._logs[key]
        before = {segment.base_offset: segment for segment in log.segments}
        yield from compact_in_steps(log, now_ms, self._settings.gateway_topics_segment_bytes)
        if self._logs.get(key) is not log:
            return
        after = {segment.base_offset: segment for segment in log.segments}
        for base_offset, segment in before.items():
            if after.get(base_offset) is not segment:
                self._ledger.remove((key, base_offset))
        for base_offset, segment in after.items():
            if (key, base_offset) not in self._ledger:
                self._ledger.add((key, base_offset), segment.size)

    def remove(self, key: PartitionKey) -> None:
        """Close a partition whose topic is deleted; the caller removes the files."""
        self._written.discard(key.topic_id)
        opening = self._opening.pop(key, None)
        log = self._logs.pop(key, None) if opening is None else opening.log
        for segment in log.segments if log is not None else ():
            self._files.forget(segment.path)
        self._ledger.remove_partition(key)

    def close(self) -> None:
        """Close all files."""
        self._files.close()
        self._opening.clear()
        self._logs.clear()

    def _is_compacted(self, segment: SegmentKey) -> bool:
        """Whether the segment's topic is compacted only, so that it must not be deleted whole."""
        return self._policy_of(segment[0].topic_id) == COMPACT

    def _drop_until(self, oldest: SegmentKey) -> None:
        """Delete a segment of an open partition and all segments before it."""
        key, base_offset = oldest
        self._drop(key, self._logs[key].drop_until(base_offset))
        self._ledger.remove(oldest)

    def _drop(self, key: PartitionKey, dropped: Iterator[Segment]) -> None:
        try:
            for segment in dropped:
                self._ledger.remove((key, segment.base_offset))
        except OSError as error:
            _log_failure(key, error)


def _log_failure(key: PartitionKey, error: OSError) -> None:
    _log.error("topic %s, partition %d: %s", key.topic_id.hex(), key.partition, error)
