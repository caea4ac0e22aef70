"""Topics whose records this process keeps itself: ``LocalTopics``, a small, bounded store.

It makes stock clients work, and is no message store: records are written to files before they
are acknowledged, but not fsynced, so that they outlive the process and not a power failure; there
is one copy, and old records go by size, or of a compacted topic where their key has a newer one. An
end offset never goes back, whatever is lost (``gateway.topics.log.kept_end_offsets``).

Below the folder lie ``<topic id>/<partition>/`` with the files of
``gateway.topics.log.partition_log`` and the file ``end-offsets``. A deleted topic's folder is
renamed at once and removed by a worker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from coordinator.runtime.api import Coordinator
from coordinator.runtime.loop.slices import Steps
from gateway.topics.fetch_waits import DataWatches
from gateway.topics.log.boot import is_same_boot, read_boot_id
from gateway.topics.log.kept_end_offsets import EndOffsets, Frame, compute_lifts
from gateway.topics.log.layout import (
    find_leftovers,
    find_segment_files,
    remove_leftover,
    set_aside,
    sync_file,
)
from gateway.topics.log.open_files import write_file
from gateway.topics.log.open_logs import PartitionLogs
from gateway.topics.log.partition_log import LEADER_EPOCH, PartitionLog
from gateway.topics.log.policies import COMPACT, CleanupPolicies
from gateway.topics.log.produced import InvalidTimestamp, check_batch
from gateway.topics.settings import TopicSettings
from gateway.topics.topic_catalogue import (
    MAX_TIMESTAMP,
    NO_OFFSET,
    Append,
    AppendResult,
    Broker,
    DataWatch,
    OffsetQuery,
    OffsetResult,
    PartitionKey,
    PartitionLeader,
    Read,
    ReadResult,
    TopicDataError,
    compute_missing_error,
    is_in_image,
)
from gateway.topics.topic_configs import compute_topic_configs
from gateway.topics.upkeep import Upkeep, note_io_error
from model.errors import ErrorCode
from model.ids import TopicId, TopicName
from model.topics import Topic, TopicImage

T = TypeVar("T")

_REFUSED_UNREAD = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Refusals that Kafka gives without a log start offset."""

_THIS_SERVER = PartitionLeader(None, LEADER_EPOCH)
_BOOT_MARK = "boot-id"
_log = logging.getLogger(__name__)


def _compute_wall_ms() -> int:
    return time.time_ns() // 1_000_000


class LocalTopics:
    """The ``TopicCatalogue`` of topics that are kept here; this server leads all partitions.

    In order: the constructor, ``lift_end_offsets`` where it ``needs_lift``, ``start``; at the end
    ``stop``. Everything on the event loop.
    """

    def __init__(
        self,
        folder: Path,
        coordinator: Coordinator,
        settings: TopicSettings,
        *,
        wall_ms: Callable[[], int] = _compute_wall_ms,
    ) -> None:
        """Read the end offsets in ``folder``, which is made where it is not there.

        Raises ``OSError``.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._coordinator = coordinator
        self._settings = settings
        self._wall_ms = wall_ms
        self._worker = ThreadPoolExecutor(1, "topics")
        self._remover = ThreadPoolExecutor(1, "topics-remover")
        self._ends = EndOffsets(folder / "end-offsets")
        # A complete segment is fsynced: that bounds what a power failure takes of a partition.
        self._policies = CleanupPolicies(folder)
        self._logs = PartitionLogs(
            folder,
            settings,
            self._ends.get,
            self._policies.get,
            lambda path: self._worker.submit(sync_file, path),
            lambda key: self._upkeep.compact_soon(key),
        )
        self._upkeep = Upkeep(self._logs, coordinator, self._worker, wall_ms)
        self._watches = DataWatches(lambda callback: asyncio.get_running_loop().call_soon(callback))
        self._dirty: set[PartitionKey] = set()
        self._sync_timer: asyncio.TimerHandle | None = None
        self._is_open = True
        self._needs_lift = not is_same_boot(folder / _BOOT_MARK, read_boot_id())

    # ------------------------------------------------------------------------------ life

    @property
    def needs_lift(self) -> bool:
        """Whether records may be lost, so that ``lift_end_offsets`` must come before ``start``.

        They are not if the machine has run on since the store was last started: the end of the
        process alone loses nothing. Where that is known, the committed offsets need not be read.
        """
        return self._needs_lift

    def lift_end_offsets(self, floors: Mapping[tuple[TopicName, int], int]) -> None:
        """Let no partition end below its highest committed offset; durable when this returns.

        Topics that do not exist are passed over. Raises ``OSError``.
        """
        wanted = compute_lifts(self.image, floors)
        for key, floor in wanted.items():
            log = self._logs.get(key)
            if log is not None:
                log.end_offset = max(log.end_offset, floor)
        frame = self._ends.lift(wanted)
        if frame is not None:
            self._worker.submit(self._ends.write_frame, frame).result()
        self._needs_lift = False

    async def start(self) -> None:
        """Follow the coordinator's topics, remove what is left of deleted ones, warm up.

        The coordinator must be serving. What lies in the folder for topics that it does not know
        is removed. The partitions are opened in the background, a few at a time, so that later
        requests need not wait for it.
        """
        if not self._coordinator.is_serving():
            raise RuntimeError("the topic store starts after the coordinator")
        if not self._needs_lift:
            write_file(self._folder / _BOOT_MARK, read_boot_id().encode())
        self._coordinator.on_topics_changed(self._on_topics_changed)
        loop = asyncio.get_running_loop()
        for leftover in find_leftovers(self._folder):
            self._remove(leftover)
        found = await loop.run_in_executor(self._worker, find_segment_files, self._folder)
        known = self.image.by_id
        self._ends.forget([key for key in self._ends.partitions() if key.topic_id not in known])
        having_files = {file.key.topic_id for file in found} | set(self._policies.topic_ids())
        for topic_id in having_files - known.keys():
            self._policies.forget(topic_id)
            self._remove_folder(topic_id)
        self._logs.add_found(file for file in found if file.key.topic_id in known)
        self._upkeep.start()

    async def stop(self) -> None:
        """Make the end offsets durable and close all files. Stopping twice does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        self._upkeep.stop()
        if self._sync_timer is not None:
            self._sync_timer.cancel()
        self.sync_end_offsets()
        for pool in (self._worker, self._remover):
            await asyncio.get_running_loop().run_in_executor(None, pool.shutdown)
        self._logs.close()

    def sync_end_offsets(self) -> None:
        """Hand the end offsets that changed to the worker, which makes them durable.

        Called by itself an interval after the first change.
        """
        self._sync_timer = None
        changed = {}
        for key in self._dirty:
            log = self._logs.get(key)
            if log is not None:
                changed[key] = log.end_offset
        self._dirty.clear()
        frame = self._ends.lift(changed)
        if frame is not None:
            self._worker.submit(self._write_ends, frame)

    # ------------------------------------------------------------------------- catalogue

    @property
    def image(self) -> TopicImage:
        """All topics."""
        return self._coordinator.image

    def brokers(self) -> Sequence[Broker]:
        """No other servers lead anything."""
        return ()

    @property
    def fetch_max_bytes(self) -> int:
        """See ``TopicCatalogue``."""
        return self._settings.fetch_max_bytes

    def leader_of(self, key: PartitionKey) -> PartitionLeader:
        """This server."""
        return _THIS_SERVER

    def leaders_of(self, topic: Topic) -> Sequence[PartitionLeader]:
        """This server."""
        return (_THIS_SERVER,) * topic.partitions

    def topic_configs(self, topic_id: TopicId) -> Mapping[str, str]:
        """The same for every topic, but for the cleanup policy."""
        return compute_topic_configs(self._settings, self._policies.get(topic_id))

    def keep_cleanup_policy(
        self, topic_id: TopicId, policy: str, on_done: Callable[[ErrorCode], None]
    ) -> None:
        """``on_done`` is called from the loop, when the policy is durable."""
        if not self._is_open:
            on_done(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        self._policies.add(topic_id, policy)
        loop = asyncio.get_running_loop()

        def write() -> None:
            error = ErrorCode.NONE
            try:
                self._policies.write(topic_id, policy)
            except OSError as failure:
                _log.error("topic %s: %s", topic_id.hex(), failure)
                error = ErrorCode.KAFKA_STORAGE_ERROR
            loop.call_soon_threadsafe(on_done, error)

        self._worker.submit(write)

    def drop_cleanup_policy(self, topic_id: TopicId) -> None:
        """With the folder that the policy made."""
        self._policies.forget(topic_id)
        self._remove_folder(topic_id)

    def append(self, appends: Sequence[Append]) -> Steps[Sequence[AppendResult]]:
        """Append."""
        results = []
        for append in appends:
            results.append((yield from self._append_one(append)))
        return results

    def read(
        self, reads: Sequence[Read], max_bytes: int, *, at_least_one: bool = True
    ) -> Steps[Sequence[ReadResult]]:
        """What is not known of the files is read first; then all is read in one turn."""
        failed: dict[int, ReadResult] = {}
        # Again, for what is loaded may be dropped while the next is.
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
        left = min(max_bytes, self.fetch_max_bytes)
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
        """Find offsets; each that is looked for in a file takes a slice at least."""
        results = []
        for query in queries:
            results.append((yield from self._find_one(query)))
            if query.timestamp >= 0 or query.timestamp == MAX_TIMESTAMP:
                yield
        return results

    def watch(
        self, keys: Collection[PartitionKey], min_bytes: int, on_data: Callable[[], None]
    ) -> DataWatch:
        """``on_data`` is called in a turn after that of the append, and must not raise."""
        return self._watches.add(keys, min_bytes, on_data)

    # --------------------------------------------------------------------------- records

    def _open(self, key: PartitionKey) -> Steps[PartitionLog]:
        """The partition; raises ``_GoneError`` where there is none, or ``OSError``."""
        yield from self._while_there(key, self._logs.open_in_steps(key))
        log = self._logs.get(key)
        assert log is not None
        return log

    def _while_there(self, key: PartitionKey, steps: Steps[T]) -> Steps[T]:
        """The steps, unless the partition goes meanwhile: raises ``_GoneError``."""
        while True:
            if not is_in_image(self.image, key):
                raise _GoneError(compute_missing_error(self.image, key))
            if not self._is_open:
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
            return AppendResult(note_io_error(key, error), message="the records cannot be written")
        if appended.new_bytes:
            self._logs.on_append(key, log, appended.new_bytes)
            self._mark_dirty(key)
            self._watches.on_append(key, appended.new_bytes)
        return AppendResult(
            ErrorCode.NONE,
            appended.base_offset,
            log.start_offset,
            duplicate_timestamp=appended.duplicate_timestamp,
        )

    def _is_unread(self, number: int, read: Read, failed: Collection[int]) -> bool:
        """Whether files have to be read to know where the records are."""
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
        """Raises unless the disk has room for the coordinator's log, which comes first."""
        disk = os.statvfs(self._folder)
        if disk.f_bavail * disk.f_frsize < self._settings.log_min_free_bytes:
            raise TopicDataError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                "the disk is nearly full: make room, or lower log.min.free.bytes "
                f"({self._settings.log_min_free_bytes})",
            )

    # ----------------------------------------------------------------------- end offsets

    def _mark_dirty(self, key: PartitionKey) -> None:
        self._dirty.add(key)
        if self._sync_timer is None and self._is_open:
            delay = self._settings.gateway_topics_sync_interval_ms / 1000
            self._sync_timer = asyncio.get_running_loop().call_later(delay, self.sync_end_offsets)

    def _write_ends(self, frame: Frame) -> None:
        try:
            self._ends.write_frame(frame)
        except OSError as error:
            self._ends.mark_damaged()
            _log.error("end offsets cannot be made durable in %s: %s", self._folder, error)

    # ---------------------------------------------------------------------------- topics

    def _on_topics_changed(self, gone: Sequence[Topic]) -> None:
        if self._is_open:
            for topic in gone:
                self._remove_topic(topic)

    def _remove_topic(self, topic: Topic) -> None:
        keys = [PartitionKey(topic.topic_id, number) for number in range(topic.partitions)]
        for key in keys:
            self._logs.remove(key)
        self._ends.forget(keys)
        self._policies.forget(topic.topic_id)
        self._remove_folder(topic.topic_id)
        self._watches.on_gone(keys)

    def _remove_folder(self, topic_id: TopicId) -> None:
        leftover = set_aside(self._folder, topic_id)
        if leftover is not None:
            self._remove(leftover)

    def _remove(self, leftover: Path) -> None:
        self._remover.submit(remove_leftover, leftover, lambda: not self._is_open)


class _GoneError(TopicDataError):
    """There is no such partition, or none any more."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code, "there is no such partition")
