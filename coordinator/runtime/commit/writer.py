"""The writer: pipelined group commit.

Everything pending, of all shards, becomes one atomic write, unsynced; then one sync makes it
durable in another thread while the loop goes on gathering the next. One sync is in flight at a
time. Answers are released when the sync that covers them is back, never before. Where there is
nothing but commits, and syncs are brief, the loop waits for them itself (``sync_pace``), and first
gathers what comes.

A failed write, sync or mark ends the process: memory is ahead of the log, and a restart is the
way back. A sync is never retried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import structlog

from coordinator.runtime.api import Answer, Release, Reply
from coordinator.runtime.clock import Scheduler, SteadyClock
from coordinator.runtime.commit.entries import Entry, _encode_entry
from coordinator.runtime.commit.partition_encoder import (
    Commit,
    CommitBlock,
    PartitionEncoder,
    encode_lone_commit,
)
from coordinator.runtime.commit.process_end import HalfApplied
from coordinator.runtime.loop.slices import STALL_RETRY_MS
from coordinator.runtime.loop.stats import Stats
from model.errors import CoordinatorNotAvailable
from model.ids import LogOffset, LogPartition
from model.log.transaction_records import count_records
from storage.log_store import (
    LogStore,
    PartitionAppend,
    StoreStalled,
)
from storage.side_codec import encode_side

log = structlog.get_logger()

WATERMARK_SYNC_MS = 1_000
FLUSH_TURNS_MAX = 16
"""For so many turns a flush waits for more, where more comes in each of them."""


CommitEntry: TypeAlias = tuple[LogPartition, Commit | CommitBlock, Release]
"""What was committed by a ticket, and what to call when it is durable."""


class Writer:
    """Gathers entries, writes them, syncs, releases answers.

    ``before_write`` is called at the end of gathering and may add entries: targets and what
    waits for them. ``show_durable`` gets the generation that has become durable before its answers
    leave, ``on_durable`` when they have. ``on_failure`` must not return.
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
        show_durable: Callable[[int], None],
        on_durable: Callable[[int], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._clock = clock
        self._stats = stats
        self._records_max = records_max
        self._before_write = before_write
        self._show_durable = show_durable
        self._on_durable = on_durable
        self._on_failure = on_failure
        self.on_written: Callable[[Sequence[PartitionAppend]], None] = _ignore
        """Is told of each write."""
        self._gathered: list[Entry | CommitEntry] = []
        self._gathered_records = 0
        self._gathered_waiting = 0
        self._has_commits_alone = True
        self._next_waiters: list[tuple[Reply, Answer]] = []
        self._flying_waiters: list[tuple[Reply, Answer]] = []
        self._next_releases: list[Release] = []
        self._flying_releases: list[Release] = []
        self._next_offsets: dict[LogPartition, LogOffset] = {}
        self._flying_offsets: dict[LogPartition, LogOffset] = {}
        self._is_flush_due = False
        self._is_flush_wanted = False
        self._is_syncing = False
        self._is_closing_batch = False
        self._has_unsynced = False
        self._seen_records = 0
        self._flush_turns = 0
        self._sync_began_ms = 0
        self._watermark_synced_ms = 0
        self.generation = 1
        """The sync that will cover what is gathered now."""
        self.durable_generation = 0

    # ------------------------------------------------------------------------------ gathering

    def append(self, entry: Entry) -> None:
        """Take records, to be written with all else that is gathered."""
        self._gathered.append(entry)
        self._has_commits_alone = False
        self._gathered_records += len(entry.records)
        if entry.transaction is not None:
            self._gathered_records += count_records(entry.transaction)
            self._gathered_waiting += entry.waiting
        for commits in entry.commits:
            self._gathered_records += len(commits.offsets)
            self._stats.offsets_committed += len(commits.offsets)
        self.request_flush()

    def append_commit(self, entry: CommitEntry) -> None:
        """``append`` for what was committed by a ticket, and replayed already."""
        self._gathered.append(entry)
        commit = entry[1]
        records = len(commit.named.keys) if isinstance(commit, CommitBlock) else 1
        self._gathered_records += records
        self._stats.offsets_committed += records
        if not self._is_flush_wanted:
            self.request_flush()

    def append_and_write(self, entry: Entry) -> None:
        """``append`` all of a command, and ``write_if_full`` if it was so without it.

        What is full by this one alone, a large commit, is written in the next turn; and the marker
        of a large transaction with little else, so that two of them are not one turn.
        """
        if entry.waiting and self._gathered:
            self._write_if_full_with(entry.waiting)
        was_full = self._is_full_with(0)
        self.append(entry)
        if was_full:
            self.write_if_full()

    def write_if_full(self) -> None:
        """Write early, without a sync, what has become too much for one write.

        To be called between commands, so that all of one command is in one write.
        """
        self._write_if_full_with(0)

    def _write_if_full_with(self, more: int) -> None:
        if self._is_full_with(more) and not self._is_closing_batch:
            self._close_batch()

    def _is_full_with(self, more: int) -> bool:
        """Whether there is enough for a write: what waits for a marker is written with it."""
        return self._gathered_records + self._gathered_waiting + more >= self._records_max

    def write_gathered(self) -> bool:
        """Write, without a sync, so that the store shows all that was replayed.

        ``False`` where the store cannot take it just now.
        """
        return not self._gathered or self._close_batch()

    def check_written(self) -> None:
        """Write what is gathered. Raises ``CoordinatorNotAvailable`` where that cannot be."""
        if not self.write_gathered():
            raise CoordinatorNotAvailable("The coordinator cannot write just now.")

    def write_early(self) -> bool:
        """Write, without a sync, what is gathered and what ``before_write`` adds to it.

        ``False`` where the store cannot take it just now.
        """
        is_written = self._close_batch()
        self.request_flush()
        return is_written

    def request_flush(self) -> None:
        """Close what is gathered in the next turn, or when the sync in flight is back."""
        if self._is_syncing:
            # Not only for records: a heartbeat may wait for ``before_write`` alone.
            self._is_flush_wanted = True
        elif not (self._is_flush_due or self._is_closing_batch):
            self._is_flush_due = True
            self._scheduler.call_soon(self._flush)

    def answer_when_durable(self, generation: int, reply: Reply, answer: Answer) -> None:
        """Release an answer that shows what this generation writes; at once if it is durable."""
        if generation <= self.durable_generation:
            _answer(reply, answer)
        elif generation < self.generation:
            self._flying_waiters.append((reply, answer))
        else:
            self._next_waiters.append((reply, answer))
            self.request_flush()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is gathered, written or being synced."""
        is_due = self._is_flush_due or self._is_flush_wanted
        return not (self._gathered or self._has_unsynced or self._is_syncing or is_due)

    # -------------------------------------------------------------------------------- writing

    def _flush(self) -> None:
        # Not work of ``Slices``: one write has all that is gathered, and everybody waits for it.
        may_wait = self._has_commits_alone and self._scheduler.waits_for_syncs
        if may_wait and self._is_gathering():
            self._scheduler.call_soon(self._flush)
            return
        self._is_flush_due = False
        if self._is_syncing:
            return
        if not self._close_batch():
            self._scheduler.call_later_ms(STALL_RETRY_MS, self.request_flush)
            return
        if self._has_unsynced:
            self._start_sync()

    def _is_gathering(self) -> bool:
        """Whether more came in the last turn. While the loop waits for a sync nothing comes, so
        the sync is for all who have something to say, not for the first of them."""
        before, self._flush_turns = self._seen_records, self._flush_turns + 1
        self._seen_records = self._gathered_records
        if self._gathered_records > before and self._flush_turns < FLUSH_TURNS_MAX:
            return True
        self._seen_records = self._flush_turns = 0
        return False

    def _close_batch(self) -> bool:
        """Write all that is gathered; ``False`` where the store cannot take it just now."""
        self._is_closing_batch = True
        try:
            if not self._prepare_write():
                return False
            try:
                if not self._gathered:
                    return True
                now = self._clock.now()
                appends = self._encode(now.wall_ms)
                side = [
                    encode_side(record)
                    for entry in self._gathered
                    if isinstance(entry, Entry)
                    for record in entry.side
                ]
                self._store.write(appends, side)
            except StoreStalled:
                return False
            except Exception as failure:  # noqa: BLE001 - ends the process
                self._on_failure(failure)
                return False
        finally:
            self._is_closing_batch = False
        self._note_written(appends, now.wall_ms)
        self.on_written(appends)
        return True

    def _prepare_write(self) -> bool:
        """What is still to come into this batch: it is replayed, and none of it may be left out."""
        try:
            self._before_write()
        except Exception as bug:  # noqa: BLE001 - ends the process
            self._on_failure(HalfApplied("the targets of a batch, and what follows them", bug))
            return False
        return True

    def _note_written(self, appends: list[PartitionAppend], wall_ms: int) -> None:
        self._has_unsynced = True
        self._stats.records_written += self._gathered_records
        waiters, releases = self._next_waiters, self._next_releases
        for entry in self._gathered:
            if not isinstance(entry, Entry):
                releases.append(entry[2])
            elif entry.reply is not None and entry.answer is not None:
                waiters.append((entry.reply, entry.answer))
        for append in appends:
            self._next_offsets[append.partition] = LogOffset(append.base_offset + append.records)
            self._stats.bytes_written += len(append.batch)
        self._clock.note_persisted(wall_ms)
        self._gathered = []
        self._gathered_records = self._gathered_waiting = 0

    def _encode(self, wall_ms: int) -> list[PartitionAppend]:
        lone: dict[LogPartition, Commit | CommitBlock] = {}
        encoders: dict[LogPartition, PartitionEncoder] = {}
        for entry in self._gathered:
            partition = entry[0]
            encoder = encoders.get(partition)
            if encoder is None:
                if not isinstance(entry, Entry) and partition not in lone:
                    lone[partition] = entry[1]
                    continue
                encoder = encoders[partition] = self._make_encoder(partition, wall_ms)
                if (commit := lone.pop(partition, None)) is not None:
                    encoder.add_commit(commit)
            if isinstance(entry, Entry):
                _encode_entry(encoder, entry)
            else:
                encoder.add_commit(entry[1])
        next_offset = self._store.next_offset
        appends = [
            encode_lone_commit(partition, next_offset(partition), commit, wall_ms)
            for partition, commit in lone.items()
        ]
        for encoder in encoders.values():
            appends += encoder.finish()
        return appends

    def _make_encoder(self, partition: LogPartition, wall_ms: int) -> PartitionEncoder:
        first = self._store.next_offset(partition)
        return PartitionEncoder(partition, first, wall_ms, self._store)

    # -------------------------------------------------------------------------------- syncing

    def _start_sync(self) -> None:
        self._is_syncing = True
        self._has_unsynced = False
        self._flying_waiters, self._next_waiters = self._next_waiters, []
        self._flying_releases, self._next_releases = self._next_releases, []
        self._flying_offsets, self._next_offsets = self._next_offsets, {}
        self._sync_began_ms = self._clock.monotonic_ms()
        self.generation += 1
        # What members do to each other is many small steps, one after another: each of them would
        # stop all others for as long as its sync takes.
        may_wait, self._has_commits_alone = self._has_commits_alone, True
        self._scheduler.run_sync(self._store.sync, self._on_synced, may_wait=may_wait)

    def _on_synced(self, result: BaseException | None) -> None:
        if isinstance(result, BaseException):
            self._on_failure(result)
            return
        self._is_syncing = False
        now_ms = self._clock.monotonic_ms()
        self._stats.flushes += 1
        self._stats.flush_seconds.add((now_ms - self._sync_began_ms) / 1000)
        try:
            self._store.mark_durable(self._flying_offsets)
        except Exception as failure:  # noqa: BLE001 - ends the process
            self._on_failure(failure)
            return
        if now_ms - self._watermark_synced_ms >= WATERMARK_SYNC_MS:
            self._watermark_synced_ms = now_ms
            self._scheduler.run_blocking(self._store.sync_watermark, self._on_watermark_synced)
        self.durable_generation = self.generation - 1
        waiters, self._flying_waiters = self._flying_waiters, []
        releases, self._flying_releases = self._flying_releases, []
        if self._is_flush_wanted:
            self._is_flush_wanted = False
            self.request_flush()
        self._show_durable(self.durable_generation)
        for reply, answer in waiters:
            _answer(reply, answer)
        for release in releases:
            try:
                release()
            except Exception:
                log.exception("answering_failed", answer="a repeated commit")
        self._on_durable(self.durable_generation)

    def _on_watermark_synced(self, result: BaseException | None) -> None:
        if isinstance(result, BaseException):
            self._on_failure(result)


def _answer(reply: Reply, answer: Answer) -> None:
    """What fails in a door is its own: others wait for their answers, and the log is written."""
    try:
        reply(answer)
    except Exception:
        log.exception("answering_failed", answer=type(answer).__name__)


def _ignore(appends: Sequence[PartitionAppend]) -> None:
    """Nobody wants to know."""
