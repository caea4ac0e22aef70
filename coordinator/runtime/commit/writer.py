"""The writer: pipelined group commit.

Everything gathered, of all shards, becomes one atomic, unsynced write. One sync then makes it
durable on another thread (``syncs``) while the loop gathers the next write. If only commits are
gathered and syncs are fast, the loop first waits for more commits and then syncs itself
(``sync_pace``).

A failed write ends the process, because memory is ahead of the log; a restart reloads the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.clock import Scheduler, SteadyClock
from coordinator.runtime.commit.entries import (
    CommitEntry,
    Entry,
    encode_entry,
)
from coordinator.runtime.commit.gathering import Gathering
from coordinator.runtime.commit.partition_encoder import PartitionEncoder, encode_lone_commit
from coordinator.runtime.commit.process_end import HalfApplied
from coordinator.runtime.commit.syncs import Syncs
from coordinator.runtime.ledger.noted_changes import WrittenChange
from coordinator.runtime.loop.slices import STALL_RETRY_MS
from coordinator.runtime.loop.stats import Stats
from model.errors import CoordinatorNotAvailable
from model.ids import LogPartition
from storage.log_store import (
    Change,
    LogStore,
    PartitionAppend,
    StoreStalled,
)
from storage.side_codec import encode_side


class Writer:
    """Gathers entries, writes them, and has them synced.

    ``before_write`` is called at the end of gathering and may add entries: targets and the
    continuations that wait for them. ``causes`` computes, from the changes of offsets in a write
    and its wall time, the entries of the ledger that belong to it. The other callbacks are those of
    ``Syncs``.
    """

    def __init__(
        self,
        store: LogStore,
        scheduler: Scheduler,
        clock: SteadyClock,
        stats: Stats,
        records_max: int,
        *,
        before_write: Callable[[], None],
        causes: Callable[[Sequence[WrittenChange], int], Sequence[Change]] = lambda _, __: (),
        causes_written: Callable[[], None] = lambda: None,
        show_durable: Callable[[int], None],
        on_durable: Callable[[int], None],
        on_failure: Callable[[BaseException], None],
        make_syncs: Callable[..., Syncs] = Syncs,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._clock = clock
        self._stats = stats
        self._before_write = before_write
        self._causes = causes
        self._causes_written = causes_written
        self._on_failure = on_failure
        self.on_written: Callable[[Sequence[PartitionAppend]], None] = _ignore
        """Called after each write."""
        self.gathering = Gathering(records_max, stats)
        self.syncs = make_syncs(
            store,
            scheduler,
            clock,
            stats,
            on_synced=self._on_synced,
            show_durable=show_durable,
            on_durable=on_durable,
            on_failure=on_failure,
        )
        self._is_flush_due = False
        self._is_flush_wanted = False
        self._is_closing_batch = False

    @property
    def generation(self) -> int:
        """The sync that will cover what is gathered now."""
        return self.syncs.generation

    # ------------------------------------------------------------------------------ gathering

    def append(self, entry: Entry) -> None:
        """Gather records for the next write."""
        self.gathering.add(entry)
        self.request_flush()

    def append_commit(self, entry: CommitEntry) -> None:
        """``append`` for a commit with a ticket, which is already replayed."""
        self.gathering.add_commit(entry)
        if not self._is_flush_wanted:
            self.request_flush()

    def append_and_write(self, entry: Entry) -> None:
        """``append`` a command's records; ``write_if_full`` if the write was full without them.

        A write that only this command fills (a large commit) is written in the next iteration. The
        marker of a large transaction is written with little else, so that one iteration never
        writes two of them.
        """
        gathering = self.gathering
        if entry.waiting and gathering.entries and gathering.is_full(entry.waiting):
            self._close_batch_early()
        was_full = gathering.is_full()
        self.append(entry)
        if was_full:
            self.write_if_full()

    def write_if_full(self) -> None:
        """Write early, without a sync, if the write is full.

        Call it between commands, so that one write has all records of a command.
        """
        if self.gathering.is_full():
            self._close_batch_early()

    def _close_batch_early(self) -> None:
        if not self._is_closing_batch:
            self._close_batch()

    def write_gathered(self) -> bool:
        """Write, without a sync, so that the store shows everything replayed.

        Returns ``False`` if the store stalls.
        """
        return not self.gathering.entries or self._close_batch()

    def check_written(self) -> None:
        """Write what is gathered. Raises ``CoordinatorNotAvailable`` if the store stalls."""
        if not self.write_gathered():
            raise CoordinatorNotAvailable("The coordinator cannot write now; retry later.")

    def write_early(self) -> bool:
        """Write, without a sync, what is gathered and what ``before_write`` adds.

        Returns ``False`` if the store stalls.
        """
        is_written = self._close_batch()
        self.request_flush()
        return is_written

    def request_flush(self) -> None:
        """Flush in the next iteration, or when the sync in flight has returned."""
        if self.syncs.is_syncing:
            # Needed even without records: a heartbeat may wait for ``before_write`` alone.
            self._is_flush_wanted = True
        elif not (self._is_flush_due or self._is_closing_batch):
            self._is_flush_due = True
            self._scheduler.call_soon(self._flush)

    def answer_when_durable(self, generation: int, reply: Reply, answer: Answer) -> None:
        """Send a response once the generation that it shows is durable; at once if it is."""
        if self.syncs.wait(generation, reply, answer):
            self.request_flush()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is gathered, written or being synced."""
        is_due = self._is_flush_due or self._is_flush_wanted
        has_unsynced = self.syncs.next.has_writes or self.syncs.is_syncing
        return not (self.gathering.entries or has_unsynced or is_due)

    # -------------------------------------------------------------------------------- writing

    def _flush(self) -> None:
        # A flush does not go through ``Slices``: one write covers everything, and everyone waits
        # for it.
        gathering = self.gathering
        may_wait = gathering.has_commits_alone and self._scheduler.waits_for_syncs
        if may_wait and gathering.is_growing():
            self._scheduler.call_soon(self._flush)
            return
        self._is_flush_due = False
        if self.syncs.is_syncing:
            return
        if not self._close_batch():
            self._scheduler.call_later_ms(STALL_RETRY_MS, self.request_flush)
            return
        if self.syncs.next.has_writes:
            # A rebalance is many small steps in sequence. Syncing each on the loop would block all
            # members once per step, so the loop waits only for syncs of commits.
            may_wait, gathering.has_commits_alone = gathering.has_commits_alone, True
            self.syncs.begin(may_wait=may_wait)

    def _on_synced(self) -> None:
        if self._is_flush_wanted:
            self._is_flush_wanted = False
            self.request_flush()

    def _close_batch(self) -> bool:
        """Write everything gathered; ``False`` if the store stalls."""
        self._is_closing_batch = True
        try:
            if not self._prepare_write():
                return False
            try:
                if not self.gathering.entries:
                    return True
                now = self._clock.now()
                began_s = perf_counter()
                appends, changed = self._encode(now.wall_ms)
                side = [
                    encode_side(record)
                    for entry in self.gathering.entries
                    if isinstance(entry, Entry)
                    for record in entry.side
                ]
                self._store.write(appends, side, self._causes(changed, now.wall_ms))
            except StoreStalled:
                return False
            except Exception as failure:  # noqa: BLE001 - ends the process
                self._on_failure(failure)
                return False
        finally:
            self._is_closing_batch = False
        self._stats.queue_seconds["batch"].add(began_s - self.gathering.began_s)
        self._stats.write_seconds.add(perf_counter() - began_s)
        self._note_written(appends, now.wall_ms)
        self.on_written(appends)
        return True

    def _prepare_write(self) -> bool:
        """Add the last entries of the batch. They are already replayed, so none may be left out."""
        try:
            self._before_write()
        except Exception as bug:  # noqa: BLE001 - ends the process
            self._on_failure(HalfApplied("the targets of a batch and their continuations", bug))
            return False
        return True

    def _note_written(self, appends: list[PartitionAppend], wall_ms: int) -> None:
        self._stats.records_written += self.gathering.records
        self.syncs.next.note_written(self.gathering.entries, appends)
        for append in appends:
            self._stats.bytes_written += len(append.batch)
        self._clock.note_persisted(wall_ms)
        self._causes_written()
        self.gathering.clear()

    def _encode(self, wall_ms: int) -> tuple[list[PartitionAppend], list[WrittenChange]]:
        by_partition: dict[LogPartition, Entry | CommitEntry | PartitionEncoder] = {}
        for entry in self.gathering.entries:
            partition = entry[0]
            known = by_partition.setdefault(partition, entry)
            if known is entry:
                continue
            if not isinstance(known, PartitionEncoder):
                known = by_partition[partition] = self._begin_partition(partition, known, wall_ms)
            encode_entry(known, entry)
        appends: list[PartitionAppend] = []
        changed: list[WrittenChange] = []
        for partition, known in by_partition.items():
            if isinstance(known, Entry):
                known = self._begin_partition(partition, known, wall_ms)
            if isinstance(known, PartitionEncoder):
                appends += known.finish()
                changed += known.changes
            else:
                appends += self._encode_lone(partition, known, wall_ms)
        return appends, changed

    def _encode_lone(
        self, partition: LogPartition, entry: CommitEntry, wall_ms: int
    ) -> Sequence[PartitionAppend]:
        """Encode the only entry of a partition in this write."""
        _, offsets, timestamp, encoder, _ = entry
        first = self._store.next_offset(partition)
        append = encode_lone_commit(partition, first, wall_ms, offsets, timestamp, encoder)
        if append is not None:
            return (append,)
        return self._begin_partition(partition, entry, wall_ms).finish()

    def _begin_partition(
        self, partition: LogPartition, entry: Entry | CommitEntry, wall_ms: int
    ) -> PartitionEncoder:
        first = self._store.next_offset(partition)
        encoder = PartitionEncoder(partition, first, wall_ms, self._store)
        encode_entry(encoder, entry)
        return encoder


def _ignore(appends: Sequence[PartitionAppend]) -> None:
    """The default of ``on_written``."""
