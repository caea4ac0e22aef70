"""Transactions that nobody ends: aborted when they have been open for too long.

Whoever coordinates them is elsewhere, and may be gone, or nobody may coordinate them at all. Until
they end their groups have offsets that nobody can read as stable, and nothing of them expires.
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
from model.commands import INTERNAL, AbortTransaction, Command
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import ProducerId

log = structlog.get_logger()

INTERVAL_MS = 10_000
"""Kafka's ``transaction.abort.timed.out.transaction.cleanup.interval.ms``."""
GRACE_MS = 60_000
"""A coordinator that has decided while this process was away is heard first."""
SLICE = 100
"""So many are aborted in one turn; of many offsets each counts as more."""
OFFSETS_OF_ONE = 50
SHOWN = 10
"""Groups that are named in a message."""


class TransactionTimeouts:
    """Looks every ``INTERVAL_MS`` for what has been open for ``transaction.max.timeout.ms``.

    That is measured by the monotonic clock. Of what a start finds open it is counted from the first
    offset on, or from the last import of a log, by the wall clock, whose leaps can only shorten it
    to ``GRACE_MS``. ``is_held`` says that nothing may be written now.
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
        """All groups are loaded."""
        now = self._clock.now()
        for shard in self._shards:
            for _, transaction in shard.open_transactions.producers():
                age_ms = now.wall_ms - max(transaction.since_ms, self._imported_at_ms())
                left_ms = min(max(self._timeout_ms - age_ms, self._grace_ms), self._timeout_ms)
                transaction.timeout.at_ms = now.monotonic_ms + left_ms
        self._slices.run(self._keep_looking())

    def deadline_ms(self, transaction: OpenTransaction) -> int:
        """The wall time at which a transaction times out, if nothing happens to the clock."""
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
                # The process stood still: markers that came meanwhile are not read yet.
                self._not_before_ms = now_ms + self._grace_ms
            self._note_new(now_ms)
            is_more = self._abort_slice(now_ms)

    def _abort_slice(self, now_ms: int) -> bool:
        """Whether there may be more."""
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
                    break  # The others began earlier.
                transaction.timeout.at_ms = now_ms + self._timeout_ms

    def _find(self, now_ms: int) -> Iterator[tuple[Shard, ProducerId, OpenTransaction]]:
        for shard in self._shards:
            for producer_id, transaction in shard.open_transactions.producers():
                if transaction.timeout.at_ms is None or transaction.timeout.at_ms > now_ms:
                    break  # The others began later.
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
        # One that is refused times out again.
        self._stats.transactions_timed_out += not isinstance(answer, GroupError)


def _weigh(found: tuple[Shard, ProducerId, OpenTransaction]) -> int:
    """As how many a transaction counts."""
    return max(len(found[2].epochs) // OFFSETS_OF_ONE, 1)
