"""``LocalTopics``: the topics whose records this process stores, small and bounded.

It makes stock clients work and is not a message store. Records are written to files before they
are acknowledged, but not fsynced: they survive the process, not a power failure. There is one copy.
Old records are deleted by size, or by key in a compacted topic. An end offset never goes back,
whatever is lost (``gateway.topics.log.kept_end_offsets``).

The store's folder has ``<topic id>/<partition>/`` with the files of
``gateway.topics.log.partition_log``, and the file ``end-offsets``. A deleted topic's folder is
renamed at once and removed by a worker thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coordinator.runtime.api import Coordinator
from coordinator.runtime.loop.slices import Steps
from gateway.topics.fetch_waits import DataWatches
from gateway.topics.local_records import LocalRecords
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
from gateway.topics.log.partition_log import LEADER_EPOCH
from gateway.topics.log.policies import CleanupPolicies
from gateway.topics.settings import TopicSettings
from gateway.topics.topic_catalogue import (
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
)
from gateway.topics.topic_configs import compute_topic_configs
from gateway.topics.upkeep import Upkeep
from model.errors import ErrorCode
from model.ids import TopicId, TopicName
from model.topics import Topic, TopicImage

_THIS_SERVER = PartitionLeader(None, LEADER_EPOCH)
_BOOT_MARK = "boot-id"
_log = logging.getLogger(__name__)


def _compute_wall_ms() -> int:
    return time.time_ns() // 1_000_000


class LocalTopics:
    """The ``TopicCatalogue`` of topics stored here; this server leads all partitions.

    Call the constructor, ``lift_end_offsets`` if ``needs_lift``, ``start``, and in the end
    ``stop``, all on the event loop.
    """

    def __init__(
        self,
        folder: Path,
        coordinator: Coordinator,
        settings: TopicSettings,
        *,
        wall_ms: Callable[[], int] = _compute_wall_ms,
    ) -> None:
        """Read the end offsets in ``folder``, creating it if necessary. Raises ``OSError``."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._coordinator = coordinator
        self._settings = settings
        self._worker = ThreadPoolExecutor(1, "topics")
        self._remover = ThreadPoolExecutor(1, "topics-remover")
        self._ends = EndOffsets(folder / "end-offsets")
        # Complete segments are fsynced, which bounds what a power failure takes of a partition.
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
        self._records = LocalRecords(
            folder,
            settings,
            self._logs,
            self._policies,
            wall_ms,
            image=lambda: self.image,
            is_open=lambda: self._is_open,
            on_appended=self._note_appended,
        )
        self._dirty: set[PartitionKey] = set()
        self._sync_timer: asyncio.TimerHandle | None = None
        self._is_open = True
        self._needs_lift = not is_same_boot(folder / _BOOT_MARK, read_boot_id())

    # ------------------------------------------------------------------------- lifecycle

    @property
    def needs_lift(self) -> bool:
        """Whether records may have been lost, so ``lift_end_offsets`` must precede ``start``.

        None are lost if the machine has not rebooted since the store was last started, because the
        end of the process alone loses nothing. Then the committed offsets need not be read.
        """
        return self._needs_lift

    def lift_end_offsets(self, floors: Mapping[tuple[TopicName, int], int]) -> None:
        """Raise each end offset to at least the partition's highest committed offset.

        The result is durable on return. Topics that do not exist are skipped. Raises ``OSError``.
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
        """Follow the coordinator's topics, remove leftovers of deleted ones, open the partitions.

        The coordinator must be serving; files of topics that it does not know are removed. The
        partitions are opened in the background, a few at a time, so that requests need not wait for
        that later.
        """
        if not self._coordinator.is_serving():
            raise RuntimeError("the topic store must start after the coordinator")
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
        """Make the end offsets durable and close all files; idempotent."""
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
        """Have the worker thread make the changed end offsets durable.

        A timer calls this ``gateway.topics.sync.interval.ms`` after the first change.
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
        """No brokers: no other server leads a partition."""
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
        """The effective configs, which differ between topics in the cleanup policy only."""
        return compute_topic_configs(self._settings, self._policies.get(topic_id))

    def keep_cleanup_policy(
        self, topic_id: TopicId, policy: str, on_done: Callable[[ErrorCode], None]
    ) -> None:
        """Store the policy; ``on_done`` is called on the loop once it is durable."""
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
        """Remove the policy and the folder that was created for it."""
        self._policies.forget(topic_id)
        self._remove_folder(topic_id)

    def append(self, appends: Sequence[Append]) -> Steps[Sequence[AppendResult]]:
        """See ``TopicCatalogue``."""
        return self._records.append(appends)

    def read(
        self, reads: Sequence[Read], max_bytes: int, *, at_least_one: bool = True
    ) -> Steps[Sequence[ReadResult]]:
        """See ``TopicCatalogue``."""
        return self._records.read(reads, max_bytes, at_least_one=at_least_one)

    def find_offsets(self, queries: Sequence[OffsetQuery]) -> Steps[Sequence[OffsetResult]]:
        """See ``TopicCatalogue``."""
        return self._records.find_offsets(queries)

    def watch(
        self, keys: Collection[PartitionKey], min_bytes: int, on_data: Callable[[], None]
    ) -> DataWatch:
        """Call ``on_data`` in an iteration after that of the append; it must not raise."""
        return self._watches.add(keys, min_bytes, on_data)

    # ----------------------------------------------------------------------- end offsets

    def has_records(self, topic_id: TopicId) -> bool:
        """Whether the topic has, or had, records here: retention leaves the newest file.

        An end offset does not tell: it is also lifted to what was committed of records elsewhere.
        """
        return self._logs.is_written(topic_id)

    def _note_appended(self, key: PartitionKey, new_bytes: int) -> None:
        self._watches.on_append(key, new_bytes)
        self._dirty.add(key)
        if self._sync_timer is None and self._is_open:
            delay = self._settings.gateway_topics_sync_interval_ms / 1000
            self._sync_timer = asyncio.get_running_loop().call_later(delay, self.sync_end_offsets)

    def _write_ends(self, frame: Frame) -> None:
        try:
            self._ends.write_frame(frame)
        except OSError as error:
            self._ends.mark_damaged()
            _log.error("cannot make end offsets durable in %s: %s", self._folder, error)

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
