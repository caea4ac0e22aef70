"""The coordinator's own background work, done in time slices between event-loop iterations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

import structlog

from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Reply
from coordinator.runtime.clock import Scheduler, SteadyClock
from coordinator.runtime.commit.checkpoints import Checkpoints
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loop.slices import Slices
from coordinator.runtime.loop.stats import Stats
from coordinator.runtime.offsets.expiry_walks import OffsetExpiry
from coordinator.runtime.offsets.transaction_timeouts import TransactionTimeouts
from coordinator.runtime.retention.log_trimming import LogTrimming
from coordinator.runtime.topics.topic_deletion import TopicDeletion
from coordinator.runtime.topics.topic_images import TopicCatalogueRuntime
from model.commands.command import Command
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, ProducerId, compute_log_partition
from model.log.records import OffsetCommitKey
from storage.log_store import LogStore, PartitionAppend

SILENCE_MS = 86_400_000
"""After this long without a write, the time before a start does not count against offset
retention."""

log = structlog.get_logger()


class Background:
    """Runs the background walks: topic deletion, offset expiry, log trimming, transaction timeouts,
    and the checkpoints of the store.

    One event-loop iteration of ``slices`` does one slice of one walk, and only when no other work
    waits. ``submit`` takes the coordinator's own commands. ``begin_grace`` keeps all offsets for
    one more retention period. ``is_held`` says that nothing may be written now. ``on_offsets_lost``
    gets each group that durably lost offsets. ``on_failure`` handles a failed write and must not
    return.
    """

    def __init__(
        self,
        store: LogStore,
        scheduler: Scheduler,
        clock: SteadyClock,
        stats: Stats,
        settings: CoordinatorSettings,
        shards: Sequence[Shard],
        *,
        slices: Slices,
        writer: Writer,
        checkpoints: Checkpoints,
        catalogue: TopicCatalogueRuntime,
        submit: Callable[[Command, Reply], None],
        begin_grace: Callable[[], None],
        is_held: Callable[[], bool],
        on_offsets_lost: Callable[[GroupId], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._begin_grace = begin_grace
        self._slices = slices
        self._deletion = TopicDeletion(
            store,
            slices,
            deleted=lambda: catalogue.deleted,
            image=lambda: catalogue.image,
            producers_of=partial(_find_producers, shards),
            write_gathered=writer.write_gathered,
            submit=submit,
            on_deleted=on_offsets_lost,
        )
        self._expiry = OffsetExpiry(
            store,
            slices,
            clock,
            stats,
            settings,
            shards,
            write_gathered=writer.write_gathered,
            submit=submit,
            is_held=is_held,
            imported_at_ms=lambda: catalogue.imported_at_ms,
            on_expired=on_offsets_lost,
        )
        self._trimming = LogTrimming(
            store,
            scheduler,
            slices,
            clock,
            stats,
            settings,
            imported_at_ms=lambda: catalogue.imported_at_ms,
            exists=partial(_has_group, shards),
            on_failure=on_failure,
        )
        self._checkpoints = checkpoints
        writer.on_written = self._note_written
        self.transactions = TransactionTimeouts(
            slices,
            clock,
            stats,
            settings,
            shards,
            submit=submit,
            is_held=is_held,
            imported_at_ms=lambda: catalogue.imported_at_ms,
        )

    def begin(self) -> None:
        """Start the walks; every group is loaded."""
        self._begin_grace_after_silence()
        self.delete_offsets_of_topics()
        self._expiry.begin()
        self._trimming.begin()
        self.transactions.begin()

    def _note_written(self, appends: Sequence[PartitionAppend]) -> None:
        self._trimming.sizes.note(appends)
        self._checkpoints.note(appends)

    def _begin_grace_after_silence(self) -> None:
        """Grant all offsets a grace period if, by the wall clock, nothing was written for long.

        The server may have been down, so that no client could commit; it may run on an old backup;
        or the clock may be wrong. It cannot tell which, and expired offsets do not come back.
        """
        since_ms = max(self._clock.found_ms, self._catalogue.imported_at_ms)
        silent_ms = self._clock.wall_ms() - since_ms
        if since_ms and silent_ms >= SILENCE_MS:
            log.warning("started_after_silence", last_write_ms=since_ms, silent_ms=silent_ms)
            self._begin_grace()

    def delete_offsets_of_topics(self) -> None:
        """Start deleting the offsets of topics that were deleted."""
        self._deletion.begin()

    def stop(self) -> None:
        """Stop all walks, because the store is about to close. The next start resumes them."""
        self._slices.stop()
        self._checkpoints.stop()


def _find_producers(shards: Sequence[Shard], key: OffsetCommitKey) -> Collection[ProducerId]:
    shard = shards[compute_log_partition(key.group, len(shards))]
    return shard.open_transactions.producers_of(key)


def _has_group(shards: Sequence[Shard], group_id: GroupId) -> bool:
    return shards[compute_log_partition(group_id, len(shards))].holds_group(group_id)
