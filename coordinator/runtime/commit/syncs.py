"""Syncs the log, one sync at a time, and releases the responses that wait for it.

A response is released after the sync that covers it has returned, never before. A failed sync or
mark ends the process: it is never retried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter

import structlog

from coordinator.runtime.api import Answer, Release, Reply
from coordinator.runtime.clock import Scheduler, SteadyClock
from coordinator.runtime.commit.entries import CommitEntry, Entry
from coordinator.runtime.loop.stats import Stats
from model.ids import LogOffset, LogPartition
from storage.log_store import LogStore, PartitionAppend

log = structlog.get_logger()

WATERMARK_SYNC_MS = 1_000


@dataclass(slots=True)
class Generation:
    """What one sync covers: the log offsets, and the replies that wait for it."""

    offsets: dict[LogPartition, LogOffset] = field(default_factory=dict)
    waiters: list[tuple[Reply, Answer]] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    has_writes: bool = False

    def note_written(
        self, entries: Iterable[Entry | CommitEntry], appends: Iterable[PartitionAppend]
    ) -> None:
        """Add one write to what the sync covers."""
        self.has_writes = True
        waiters, releases = self.waiters, self.releases
        for entry in entries:
            if not isinstance(entry, Entry):
                releases.append(entry[4])
            elif entry.reply is not None and entry.answer is not None:
                waiters.append((entry.reply, entry.answer))
        for append in appends:
            self.offsets[append.partition] = LogOffset(append.base_offset + append.records)


class Syncs:
    """Syncs the store, marks what is durable, and releases responses.

    ``on_synced`` is called as soon as the next sync may begin; ``show_durable`` gets the generation
    that became durable before its responses leave, ``on_durable`` after. ``on_failure`` must not
    return.
    """

    def __init__(
        self,
        store: LogStore,
        scheduler: Scheduler,
        clock: SteadyClock,
        stats: Stats,
        *,
        on_synced: Callable[[], None],
        show_durable: Callable[[int], None],
        on_durable: Callable[[int], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._clock = clock
        self._stats = stats
        self._on_synced_first = on_synced
        self._show_durable = show_durable
        self._on_durable = on_durable
        self._on_failure = on_failure
        self.next = Generation()
        self._flying = Generation()
        self.is_syncing = False
        self.generation = 1
        """The sync that will cover what is gathered now."""
        self.durable_generation = 0
        self._began_s = 0.0
        self._watermark_synced_ms = 0

    def begin(self, *, may_wait: bool) -> None:
        """Sync everything written. ``may_wait`` allows to sync on the event loop itself."""
        self.is_syncing = True
        self._flying, self.next = self.next, Generation()
        self._began_s = perf_counter()
        self.generation += 1
        self._scheduler.run_sync(self._store.sync, self._on_synced, may_wait=may_wait)

    def wait(self, generation: int, reply: Reply, answer: Answer) -> bool:
        """Release a response once a generation is durable, at once if it already is.

        Returns whether the response waits for a sync that has not begun.
        """
        if generation <= self.durable_generation:
            _answer(reply, answer)
        elif generation < self.generation:
            self._flying.waiters.append((reply, answer))
        else:
            self.next.waiters.append((reply, answer))
            return True
        return False

    def _on_synced(self, result: BaseException | None) -> None:
        if isinstance(result, BaseException):
            self._on_failure(result)
            return
        self.is_syncing = False
        now_ms = self._clock.monotonic_ms()
        self._stats.flushes += 1
        self._stats.flush_seconds.add(perf_counter() - self._began_s)
        try:
            self._store.mark_durable(self._flying.offsets)
        except Exception as failure:  # noqa: BLE001 - ends the process
            self._on_failure(failure)
            return
        if now_ms - self._watermark_synced_ms >= WATERMARK_SYNC_MS:
            self._watermark_synced_ms = now_ms
            self._scheduler.run_blocking(self._store.sync_watermark, self._on_watermark_synced)
        self.durable_generation = self.generation - 1
        # Nothing of it is kept until the next sync: a reply holds its connection.
        durable, self._flying = self._flying, Generation()
        self._on_synced_first()
        self._show_durable(self.durable_generation)
        # Repeated commits first: an answer that says that a right is revoked comes after those to
        # all commits that were allowed before.
        for release in durable.releases:
            try:
                release()
            except Exception:
                log.exception("answering_failed", answer="a repeated commit")
        for reply, answer in durable.waiters:
            _answer(reply, answer)
        self._on_durable(self.durable_generation)

    def _on_watermark_synced(self, result: BaseException | None) -> None:
        if isinstance(result, BaseException):
            self._on_failure(result)


def _answer(reply: Reply, answer: Answer) -> None:
    """Send a response; a front end that fails here must not affect others or the log."""
    try:
        reply(answer)
    except Exception:
        log.exception("answering_failed", answer=type(answer).__name__)
