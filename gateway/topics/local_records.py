"""Appends and reads records of the topics stored here, and looks offsets up by timestamp.

File access runs in time slices; a partition may be deleted between two of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from coordinator.runtime.loop.slices import Steps
from gateway.topics.log.open_logs import PartitionLogs
from gateway.topics.log.partition_log import PartitionLog
from gateway.topics.log.policies import COMPACT, CleanupPolicies
from gateway.topics.log.produced import InvalidTimestamp, check_batch
from gateway.topics.settings import TopicSettings
from gateway.topics.topic_catalogue import (
    MAX_TIMESTAMP,
    NO_OFFSET,
    Append,
    AppendResult,
    OffsetQuery,
    OffsetResult,
    PartitionKey,
    Read,
    ReadResult,
    TopicDataError,
    compute_missing_error,
    is_in_image,
)
from gateway.topics.upkeep import note_io_error
from model.errors import ErrorCode
from model.topics import TopicImage

T = TypeVar("T")

_REFUSED_UNREAD = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Errors that Kafka returns without a log start offset."""


class LocalRecords:
    """The record methods of ``TopicCatalogue``.

    ``on_appended`` is called with the partition and the number of new bytes after each append.
    """

    def __init__(
        self,
        folder: Path,
        settings: TopicSettings,
        logs: PartitionLogs,
        policies: CleanupPolicies,
        wall_ms: Callable[[], int],
        *,
        image: Callable[[], TopicImage],
        is_open: Callable[[], bool],
        on_appended: Callable[[PartitionKey, int], None],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._logs = logs
        self._policies = policies
        self._wall_ms = wall_ms
        self._image = image
        self._is_open = is_open
        self._on_appended = on_appended

    def append(self, appends: Sequence[Append]) -> Steps[Sequence[AppendResult]]:
        """Append batches one after another."""
        results = []
        for append in appends:
            results.append((yield from self._append_one(append)))
        return results

    def read(
        self, reads: Sequence[Read], max_bytes: int, *, at_least_one: bool = True
    ) -> Steps[Sequence[ReadResult]]:
        """Load the segments that are needed first, then read all partitions in one iteration."""
        failed: dict[int, ReadResult] = {}
        # Repeat: a loaded segment may be deleted while the next one loads.
        while unread := [n for n, read in enumerate(reads) if self._is_unread(n, read, failed)]:
            for number in unread:
                key = reads[number].key
                try:
                    log = yield from self._open(key)
                    steps = log.load_for_read(reads[number].offset)
                    yield from self._while_there(key, steps)
                except TopicDataError as error:
                    failed[number] = ReadResult(error.code)
                except OSError as error:
                    failed[number] = ReadResult(note_io_error(key, error))
        left = min(max_bytes, self._settings.fetch_max_bytes)
        results = []
        is_empty = at_least_one
        for number, read in enumerate(reads):
            result = failed.get(number)
            if result is None:
                result = self._read_one(read, min(read.max_bytes, left), is_empty)
            left = max(left - len(result.records), 0)
            is_empty = is_empty and not result.records
            results.append(result)
        return results

    def find_offsets(self, queries: Sequence[OffsetQuery]) -> Steps[Sequence[OffsetResult]]:
        """Look up offsets; each query that reads a file takes at least one time slice."""
        results = []
        for query in queries:
            results.append((yield from self._find_one(query)))
            if query.timestamp >= 0 or query.timestamp == MAX_TIMESTAMP:
                yield
        return results

    def _open(self, key: PartitionKey) -> Steps[PartitionLog]:
        """Open a partition; raises ``_GoneError`` if it does not exist, or ``OSError``."""
        yield from self._while_there(key, self._logs.open_in_steps(key))
        log = self._logs.get(key)
        assert log is not None
        return log

    def _while_there(self, key: PartitionKey, steps: Steps[T]) -> Steps[T]:
        """Run ``steps``; raises ``_GoneError`` if the partition is deleted or the store closes."""
        while True:
            if not is_in_image(self._image(), key):
                raise _GoneError(compute_missing_error(self._image(), key))
            if not self._is_open():
                raise _GoneError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            yield

    def _append_one(self, append: Append) -> Steps[AppendResult]:
        key = append.key
        try:
            log = yield from self._open(key)
            batch = check_batch(
                append.records,
                self._settings.message_max_bytes,
                self._wall_ms(),
                is_compacted=self._policies.get(key.topic_id) == COMPACT,
            )
            self._check_space()
            yield from self._while_there(key, self._logs.make_room(key, len(batch.data)))
            appended = log.append(batch)
        except _GoneError as error:
            return AppendResult(error.code)
        except TopicDataError as error:
            start_offset = NO_OFFSET if error.code in _REFUSED_UNREAD else log.start_offset
            rejected = error.indexes if isinstance(error, InvalidTimestamp) else ()
            return AppendResult(error.code, NO_OFFSET, start_offset, error.message, rejected)
        except OSError as error:
            return AppendResult(note_io_error(key, error), message="The records cannot be written.")
        if appended.new_bytes:
            self._logs.on_append(key, log, appended.new_bytes)
            self._on_appended(key, appended.new_bytes)
        return AppendResult(
            ErrorCode.NONE,
            appended.base_offset,
            log.start_offset,
            duplicate_timestamp=appended.duplicate_timestamp,
        )

    def _is_unread(self, number: int, read: Read, failed: Collection[int]) -> bool:
        """Whether a file must be loaded before this read."""
        log = self._logs.get(read.key)
        return (log is None or log.must_load(read.offset)) and number not in failed

    def _read_one(self, read: Read, max_bytes: int, at_least_one: bool) -> ReadResult:
        key = read.key
        log = self._logs.get(key)
        assert log is not None
        try:
            records = log.read(read.offset, max(max_bytes, 0), at_least_one)
        except TopicDataError as error:
            return ReadResult(error.code)
        except OSError as error:
            return ReadResult(note_io_error(key, error))
        return ReadResult(ErrorCode.NONE, records, log.end_offset, log.start_offset)

    def _find_one(self, query: OffsetQuery) -> Steps[OffsetResult]:
        key = query.key
        try:
            log = yield from self._open(key)
            return (yield from self._while_there(key, log.find_offset(query.timestamp)))
        except _GoneError as error:
            return OffsetResult(error.code)
        except OSError as error:
            return OffsetResult(note_io_error(key, error))

    def _check_space(self) -> None:
        """Raise ``TopicDataError`` if the disk space is needed for the coordinator's log."""
        disk = os.statvfs(self._folder)
        if disk.f_bavail * disk.f_frsize < self._settings.log_min_free_bytes:
            raise TopicDataError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                "The disk is nearly full: free space, or lower log.min.free.bytes "
                f"({self._settings.log_min_free_bytes}).",
            )


class _GoneError(TopicDataError):
    """The partition does not exist, or was deleted meanwhile."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code, "The partition does not exist.")
