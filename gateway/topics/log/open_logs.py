"""The open partitions of the store, and the bound on what all of them take together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gateway.topics.log.byte_ledger import SegmentLedger
from gateway.topics.log.compaction import compact_in_steps
from gateway.topics.log.layout import SegmentFile, compute_partition_path
from gateway.topics.log.open_files import OpenFiles
from gateway.topics.log.partition_log import PartitionLog
from gateway.topics.log.policies import COMPACT
from gateway.topics.log.segment import Segment
from gateway.topics.settings import TopicSettings
from gateway.topics.topic_catalogue import PartitionKey
from model.ids import TopicId

_log = logging.getLogger(__name__)


class PartitionLogs:
    """Partitions are opened when they are asked for, and stay open; their files do not."""

    def __init__(
        self,
        folder: Path,
        settings: TopicSettings,
        end_offset_of: Callable[[PartitionKey], int],
        policy_of: Callable[[TopicId], str],
        on_complete: Callable[[Path], object],
        on_superseded: Callable[[PartitionKey], None],
    ) -> None:
        """``end_offset_of`` tells what a partition ended at once, at least, ``policy_of`` what is
        kept of a topic; ``on_complete`` is called with each segment file that nothing more is
        written to, ``on_superseded`` with each partition that is to be compacted.
        """
        self._folder = folder
        self._settings = settings
        self._end_offset_of = end_offset_of
        self._policy_of = policy_of
        self._on_complete = on_complete
        self._on_superseded = on_superseded
        self._files = OpenFiles(settings.gateway_topics_open_files)
        self._logs: dict[PartitionKey, PartitionLog] = {}
        self._ledger = SegmentLedger()

    def get(self, key: PartitionKey) -> PartitionLog | None:
        """The partition if it is open."""
        return self._logs.get(key)

    def open(self, key: PartitionKey) -> PartitionLog:
        """The partition; raises ``OSError``."""
        log = self._logs.get(key)
        if log is None:
            log = self._make(key)
            for _ in log.recover():
                pass
            self._install(key, log)
        return log

    def open_in_steps(self, key: PartitionKey) -> Iterator[None]:
        """Open the partition a little at a time; it stops where a request opens it meanwhile."""
        if key in self._logs:
            return
        log = self._make(key)
        for _ in log.recover():
            yield
            if key in self._logs:
                return
        self._install(key, log)

    def _make(self, key: PartitionKey) -> PartitionLog:
        folder = compute_partition_path(self._folder, key)
        return PartitionLog(folder, self._files, self._settings, self._end_offset_of(key))

    def _install(self, key: PartitionKey, log: PartitionLog) -> None:
        for segment in log.segments:
            if segment.size and (key, segment.base_offset) not in self._ledger:
                self._ledger.add((key, segment.base_offset), segment.size)
        self._logs[key] = log

    def add_found(self, found: Iterable[SegmentFile]) -> None:
        """Count files of partitions that are not open yet."""
        for file in sorted(found, key=lambda file: file.written_ns):
            if file.key not in self._logs:
                self._ledger.add((file.key, file.base_offset), file.size)

    def partitions(self) -> list[PartitionKey]:
        """The partitions that have records, open or not."""
        return self._ledger.partitions()

    def on_append(self, key: PartitionKey, log: PartitionLog, size: int) -> None:
        """Bytes were appended: drop old segments as far as the bounds ask for it."""
        newest = log.segments[-1]
        self._ledger.add((key, newest.base_offset), size)
        if newest.size == size and len(log.segments) > 1:
            self._on_complete(log.segments[-2].path)
            if not self._is_compacted(key):
                self._drop(key, log.apply_retention())
            elif log.closed_bytes >= max(
                self._settings.gateway_topics_retention_bytes, 2 * log.compacted_bytes
            ):
                self._on_superseded(key)
        while self._ledger.total > self._settings.gateway_topics_total_bytes:
            if not self._drop_oldest():
                break

    def compact_in_steps(self, key: PartitionKey, now_ms: int) -> Iterator[Path | None]:
        """Compact a partition, as ``gateway.topics.log.compaction`` has it; raises ``OSError``."""
        log = self.open(key)
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
        """Forget a partition whose topic is deleted; its files are the caller's to remove."""
        log = self._logs.pop(key, None)
        for segment in log.segments if log is not None else ():
            self._files.forget(segment.path)
        self._ledger.remove_partition(key)

    def close(self) -> None:
        """Close all files."""
        self._files.close()
        self._logs.clear()

    def _is_compacted(self, key: PartitionKey) -> bool:
        """Whether no record may go that is the last of its key."""
        return self._policy_of(key.topic_id) == COMPACT

    def _drop_oldest(self) -> bool:
        """Drop the segment that was written to the longest ago; whether there was one."""
        oldest = self._ledger.oldest(self._is_compacted)
        if oldest is None:
            return False
        key, base_offset = oldest
        try:
            self._drop(key, self.open(key).drop_until(base_offset))
        except OSError as error:
            _log.error("topic %s, partition %d: %s", key.topic_id.hex(), key.partition, error)
        self._ledger.remove(oldest)
        return True

    def _drop(self, key: PartitionKey, dropped: Iterator[Segment]) -> None:
        try:
            for segment in dropped:
                self._ledger.remove((key, segment.base_offset))
        except OSError as error:
            _log.error("topic %s, partition %d: %s", key.topic_id.hex(), key.partition, error)
