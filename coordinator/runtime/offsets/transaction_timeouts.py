"""Aborts transactions that have been open for too long.

The transaction coordinator runs elsewhere; it may be gone, or there may never have been one. Until
a transaction ends, its groups have offsets that cannot be read as stable and cannot expire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import structlog

from coordinator.core.state.open_transactions import OpenTransaction
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import take_slices
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.loop.slices import PAUSE_MS, Paced, Slices
from coordinator.runtime.loop.stats import Stats
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.transactions import AbortTransaction
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import ProducerId

log = structlog.get_logger()

INTERVAL_MS = 10_000
"""Kafka's ``transaction.abort.timed.out.transaction.cleanup.interval.ms``."""
GRACE_MS = 60_000
"""Time for a transaction coordinator that decided while this process was away to send its
markers."""
SLICE = 100
"""Transactions aborted per iteration; one with many offsets counts as several."""
OFFSETS_OF_ONE = 50
SHOWN = 10
"""How many group ids a log line names."""


class TransactionTimeouts:
    """Every ``INTERVAL_MS``, aborts transactions open for ``transaction.max.timeout.ms``.

    Time is measured by the monotonic clock. A transaction found open at start counts from its first
    offset, or from the last log import, by the wall clock; a wall-clock jump can shorten its
    timeout only down to ``GRACE_MS``. ``is_held`` says that nothing may be written now.
    """

    def __init__(
        self,
        slices: Slices,
        clock: SteadyClock,
        stats: Stats,
        settings: CoordinatorSettings,
        shards: Sequence[Shard],
        *,
        submit: Callable[[Command, Reply], None],
        is_held: Callable[[], bool],
        imported_at_ms: Callable[[], int],
    ) -> None:
        self._slices = slices
        self._clock = clock
        self._stats = stats
        self._shards = shards
        self._timeout_ms = settings.transaction_max_timeout_ms
        self._interval_ms = min(INTERVAL_MS, self._timeout_ms)
        self._grace_ms = min(GRACE_MS, self._timeout_ms)
        self._submit = submit
        self._is_held = is_held
        self._imported_at_ms = imported_at_ms
        self._not_before_ms = 0

    def begin(self) -> None:
        """Start the timeouts of the transactions found open; every group is loaded."""
        now = self._clock.now()
        for shard in self._shards:
            for _, transaction in shard.open_transactions.producers():
                age_ms = now.wall_ms - max(transaction.since_ms, self._imported_at_ms())
                left_ms = min(max(self._timeout_ms - age_ms, self._grace_ms), self._timeout_ms)
                transaction.timeout.at_ms = now.monotonic_ms + left_ms
        self._slices.run(self._keep_looking())

    def deadline_ms(self, transaction: OpenTransaction) -> int:
        """The wall time at which a transaction times out, barring clock jumps."""
        if transaction.timeout.at_ms is None:
            return transaction.since_ms + self._timeout_ms
        now = self._clock.now()
        return now.wall_ms + max(transaction.timeout.at_ms, self._not_before_ms) - now.monotonic_ms

    def _keep_looking(self) -> Paced[None]:
        is_more = False
        while True:
            delay_ms = PAUSE_MS if is_more else self._interval_ms
            expected_ms = self._clock.monotonic_ms() + delay_ms
            yield delay_ms
            now_ms = self._clock.monotonic_ms()
            if now_ms - expected_ms > self._interval_ms:
                # The process stalled; markers that arrived meanwhile are still to be read.
                self._not_before_ms = now_ms + self._grace_ms
            self._note_new(now_ms)
            is_more = self._abort_slice(now_ms)

    def _abort_slice(self, now_ms: int) -> bool:
        """Abort some timed-out transactions; returns whether there may be more."""
        found = next(take_slices(self._find(now_ms), SLICE, _weigh), [])
        if not found or now_ms < self._not_before_ms or self._is_held():
            return False
        for shard, producer_id, transaction in found:
            self._abort(shard, producer_id, transaction)
        return sum(map(_weigh, found)) >= SLICE

    def _note_new(self, now_ms: int) -> None:
        for shard in self._shards:
            for transaction in shard.open_transactions.newest_first():
                if transaction.timeout.at_ms is not None:
                    break  # The rest began earlier.
                transaction.timeout.at_ms = now_ms + self._timeout_ms

    def _find(self, now_ms: int) -> Iterator[tuple[Shard, ProducerId, OpenTransaction]]:
        for shard in self._shards:
            if shard.soft.is_stopped:
                continue
            for producer_id, transaction in shard.open_transactions.producers():
                if transaction.timeout.at_ms is None or transaction.timeout.at_ms > now_ms:
                    break  # The rest began later.
                yield shard, producer_id, transaction

    def _abort(self, shard: Shard, producer_id: ProducerId, transaction: OpenTransaction) -> None:
        log.warning(
            "transaction_timed_out",
            producer_id=producer_id,
            producer_epoch=transaction.producer_epoch,
            log_partition=shard.partition,
            since_ms=transaction.since_ms,
            offsets=len(transaction.epochs),
            groups=sorted({key.group for key in transaction.epochs})[:SHOWN],
        )
        command = AbortTransaction(INTERNAL, shard.partition, producer_id, transaction.since_ms)
        self._submit(command, self._note)

    def _note(self, answer: Answer) -> None:
        # A refused abort is submitted again by the next check.
        self._stats.transactions_timed_out += not isinstance(answer, GroupError)


def _weigh(found: tuple[Shard, ProducerId, OpenTransaction]) -> int:
    """How many transactions this one counts as."""
    return max(len(found[2].epochs) // OFFSETS_OF_ONE, 1)
