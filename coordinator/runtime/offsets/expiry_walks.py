"""Offset expiry in the background: walks over all groups and their offsets, in slices.

A walk reads the store, which shows only written records. Before a decision, gathered records are
written and the offsets are read again in the same event-loop iteration, so that no commit in
between is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import structlog

from coordinator.core.offsets.offset_expiry import (
    ExpiryRule,
    compute_expiry_rule,
    is_expired,
    is_removable,
)
from coordinator.core.offsets.producers import PRODUCER_EXPIRATION_MS, find_expired_producers
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.loop.slices import PAUSE_MS, STALL_RETRY_MS, Paced, Slices, spend
from coordinator.runtime.loop.stats import Stats
from coordinator.runtime.offsets.offset_reads import (
    StoredOffset,
    decode_stored_offsets,
    encode_offset_group_prefix,
)
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.offsets import ExpireOffsets
from model.commands.transactions import ExpireProducers
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import GroupId, LogPartition
from storage.codec.errors import CodecError
from storage.log_store import LatestEntry, LogStore, StoreError

log = structlog.get_logger()

SLICE = 300
"""Offsets and groups visited per event-loop iteration, and the most that one command expires."""
REMOVAL_COST = 10
"""The cost of deciding whether to remove a group, in visited offsets."""
PRODUCERS_PER_COST = 50
"""How many producers are visited for the cost of one offset."""
HOLD_MS = 1_000
MS_PER_MINUTE = 60_000


class _Found(NamedTuple):
    """An expired offset as the walk read it."""

    entry: LatestEntry
    stored: StoredOffset


def compute_retention_ms(shard: Shard, group_id: GroupId) -> int:
    """How long the group's offsets are kept."""
    return shard.settings_of(group_id).offsets_retention_minutes * MS_PER_MINUTE


class OffsetExpiry:
    """Expires offsets past their retention every ``offsets.retention.check.interval.ms``.

    ``write_gathered`` writes the gathered records; ``False`` means that the store stalls.
    ``is_held`` says that nothing may be written now. ``imported_at_ms`` is the wall time of the
    last import, or of a start after a long silence: everything is kept for one retention period
    from then. ``on_expired`` gets each group that durably lost offsets.
    """

    def __init__(
        self,
        store: LogStore,
        slices: Slices,
        clock: SteadyClock,
        stats: Stats,
        settings: CoordinatorSettings,
        shards: Sequence[Shard],
        *,
        write_gathered: Callable[[], bool],
        submit: Callable[[Command, Reply], None],
        is_held: Callable[[], bool],
        imported_at_ms: Callable[[], int],
        on_expired: Callable[[GroupId], None],
    ) -> None:
        self._store = store
        self._slices = slices
        self._clock = clock
        self._stats = stats
        self._shards = shards
        self._is_on = settings.offsets_expiry == "on"
        self._interval_ms = settings.offsets_retention_check_interval_ms
        self._write_gathered = write_gathered
        self._submit = submit
        self._is_held = is_held
        self._imported_at_ms = imported_at_ms
        self._on_expired = on_expired
        self._now_ms = 0

    def begin(self) -> None:
        """Start; the first walk is one interval from now."""
        if self._is_on:
            self._slices.run(self._keep_walking())

    def _keep_walking(self) -> Paced[None]:
        next_ms = self._clock.monotonic_ms()
        while True:
            now_ms = self._clock.monotonic_ms()
            next_ms = max(next_ms + self._interval_ms, now_ms)
            yield next_ms - now_ms
            while not (yield from self._walk_to_the_end()):
                yield HOLD_MS

    def _walk_to_the_end(self) -> Paced[bool]:
        """Walk over all groups; ``False`` if writes were held, and the walk must be repeated.

        The walk is dropped then: its cursors would pin files that compaction has replaced, which
        may be the only disk space left to free.
        """
        walk = self._walk()
        while not self._is_held():
            # The store does not show records that are only gathered. Write them first; nothing else
            # runs in this iteration.
            if not self._write_gathered():
                yield STALL_RETRY_MS
                continue
            self._now_ms = self._clock.now().wall_ms
            try:
                goes_on = spend(walk, SLICE)
            except (StoreError, CodecError) as error:
                log.error("expiry_failed", cause=str(error))
                return True
            if not goes_on:
                return True
            yield PAUSE_MS
        return False

    # --------------------------------------------------------------------------------- the walk

    def _walk(self) -> Iterator[int]:
        """Walk over all shards. Yields the cost of each step; visiting an offset costs 1."""
        for shard in self._shards:
            if shard.soft.is_stopped:
                continue
            for group_id in self._store.offset_group_ids(shard.partition):
                yield 1
                rule = compute_expiry_rule(shard, group_id)
                if rule is not None and not self._is_in_grace(shard, group_id):
                    yield from self._walk_offsets(shard, group_id, rule)
            for group_id in [*shard.consumer_groups, *shard.all_classic_groups()]:
                yield 1
                if (
                    group_id not in shard.offset_groups
                    and is_removable(shard, group_id)
                    and not self._is_in_grace(shard, group_id)
                ):
                    yield self._expire(shard, group_id, [])
            yield self._expire_producers(shard)

    def _expire_producers(self, shard: Shard) -> int:
        if self._now_ms - self._imported_at_ms() < PRODUCER_EXPIRATION_MS:
            return 1
        producer_ids = find_expired_producers(shard, self._now_ms)
        if producer_ids:
            self._submit(ExpireProducers(INTERNAL, shard.partition, producer_ids), _ignore)
        return 1 + len(shard.producers) // PRODUCERS_PER_COST

    def _walk_offsets(self, shard: Shard, group_id: GroupId, rule: ExpiryRule) -> Iterator[int]:
        found: list[_Found] = []
        retention_ms = compute_retention_ms(shard, group_id)
        for entry in self._store.latest(shard.partition, encode_offset_group_prefix(group_id)):
            yield 1
            for stored in decode_stored_offsets((entry,)):
                if not self._is_expired(rule, stored, retention_ms):
                    continue
                if len(found) == SLICE:
                    yield self._expire(shard, group_id, found, goes_on=True)
                    found = []
                found.append(_Found(entry, stored))
        if found:
            yield self._expire(shard, group_id, found)

    def _is_in_grace(self, shard: Shard, group_id: GroupId) -> bool:
        """Whether the log was imported less than one of the group's retention periods ago."""
        since_ms = self._now_ms - self._imported_at_ms()
        return since_ms < compute_retention_ms(shard, group_id)

    def _is_expired(self, rule: ExpiryRule, stored: StoredOffset, retention_ms: int) -> bool:
        return is_expired(rule, stored.topic, stored.value, self._now_ms, retention_ms)

    # ----------------------------------------------------------------------------- one decision

    def _expire(
        self, shard: Shard, group_id: GroupId, found: list[_Found], *, goes_on: bool = False
    ) -> int:
        """Expire the offsets found, if they still are expired, and the group if it is then empty.

        The walk may have read them long ago, so they are read again. Returns the cost.
        """
        partition = shard.partition
        waiting = shard.open_transactions.unstable(group_id)
        rule = compute_expiry_rule(shard, group_id)
        retention_ms = compute_retention_ms(shard, group_id)
        keys = [entry.key for entry, _ in found]
        expired = {
            entry.key: stored
            for (entry, stored), current in zip(
                found, self._store.get_many_latest(partition, keys), strict=True
            )
            if current is not None
            and current.offset == entry.offset
            and (stored.topic, stored.partition) not in waiting
            and rule is not None
            and self._is_expired(rule, stored, retention_ms)
        }
        removes_group = (
            is_removable(shard, group_id)
            and not waiting
            and not self._has_others(partition, group_id, expired.keys())
        )
        if expired or removes_group:
            offsets = tuple((stored.topic, stored.partition) for stored in expired.values())
            command = ExpireOffsets(INTERNAL, group_id, offsets, removes_group, goes_on)
            self._submit(command, partial(self._note, command))
        return REMOVAL_COST + len(found)

    def _has_others(
        self,
        partition: LogPartition,
        group_id: GroupId,
        keys: Collection[bytes],
    ) -> bool:
        """Whether the group has offsets other than these."""
        prefix = encode_offset_group_prefix(group_id)
        left = islice(self._store.latest(partition, prefix), len(keys) + 1)
        return any(entry.key not in keys for entry in left)

    def _note(self, command: ExpireOffsets, answer: Answer) -> None:
        group_id = command.group_id
        if isinstance(answer, GroupError):
            log.warning("expiry_refused", group_id=group_id, cause=answer.message)
            return
        self._stats.offsets_expired += len(command.offsets)
        self._stats.groups_expired += command.removes_group
        self._on_expired(group_id)


def _ignore(answer: Answer) -> None:
    """A refused command is submitted again by the next walk."""
