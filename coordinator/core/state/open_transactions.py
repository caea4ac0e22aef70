"""The pending offsets of open transactions, by producer and by group.

The offsets themselves are in the store; memory holds their keys and producer epochs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Final, TypeAlias

from model.ids import GroupId, ProducerId, TopicName
from model.log.records import OffsetCommitKey

GONE_MAX: Final = 64
"""The slack of a heap: it may hold twice its live entries and this many more."""

OffsetPlace: TypeAlias = tuple[TopicName, int]
"""A topic and a partition of it."""


class _GroupEpochs:
    """The producer epochs of one group's pending offsets, with their counts.

    ``descending`` is a heap of the negated epochs; behind its first entry some may be stale.
    """

    __slots__ = ("counts", "descending", "noted")

    def __init__(self) -> None:
        self.noted = -1
        """The highest epoch that is in the heap of the transaction."""
        self.counts: dict[int, int] = {}
        self.descending: list[int] = []

    @property
    def highest(self) -> int:
        return -self.descending[0]

    def add(self, epoch: int) -> bool:
        """Add an offset; returns whether it is the first with its epoch."""
        count = self.counts.get(epoch, 0)
        self.counts[epoch] = count + 1
        if count:
            return False
        heappush(self.descending, -epoch)
        if len(self.descending) > 2 * len(self.counts) + GONE_MAX:
            self.descending = [-each for each in self.counts]
            heapify(self.descending)
        return True

    def discard(self, epoch: int) -> None:
        self.counts[epoch] -= 1
        if self.counts[epoch]:
            return
        del self.counts[epoch]
        while self.descending and -self.descending[0] not in self.counts:
            heappop(self.descending)


@dataclass(slots=True)
class Timeout:
    """When a transaction times out (monotonic ms): soft state that belongs to the runtime."""

    at_ms: int | None = None


@dataclass(slots=True)
class OpenTransaction:
    """The open transaction of one producer: its pending offsets, each with its producer epoch.

    ``since_ms`` is the wall time at which the transaction began. An imported log has no record of
    that: there it is the time of the earliest offset still pending, and ``latest_first`` has these
    offsets with their times. The epochs by group are kept in addition to ``epochs``, so that a
    commit need not search all offsets.
    """

    since_ms: int
    epochs: dict[OffsetCommitKey, int] = field(default_factory=dict)
    _groups: dict[GroupId, _GroupEpochs] = field(default_factory=dict, compare=False, repr=False)
    _ascending: list[tuple[int, GroupId]] = field(default_factory=list, compare=False, repr=False)
    """A heap of the highest epoch of each group; behind its first entry some may be stale."""
    latest_first: list[tuple[int, OffsetCommitKey]] = field(default_factory=list, compare=False)
    timeout: Timeout = field(default_factory=Timeout, compare=False)

    def group_epochs(self) -> dict[GroupId, int]:
        """The highest epoch of the pending offsets, by group."""
        return {group_id: epochs.highest for group_id, epochs in self._groups.items()}

    def find_epoch(self, group_id: GroupId) -> int | None:
        """The highest epoch of the group's pending offsets; ``None`` if there are none."""
        epochs = self._groups.get(group_id)
        return None if epochs is None else epochs.highest

    @property
    def producer_epoch(self) -> int:
        """The lowest epoch that its marker may have: the lowest of the groups' highest epochs."""
        return self._ascending[0][0]

    def add(self, key: OffsetCommitKey, producer_epoch: int) -> None:
        """Add a pending offset; it replaces another one with the same key."""
        known = self.epochs.get(key)
        if known == producer_epoch:
            return
        if known is not None:
            self.discard(key)
        self.epochs[key] = producer_epoch
        epochs = self._groups.get(key.group)
        if epochs is None:
            epochs = self._groups[key.group] = _GroupEpochs()
        if epochs.add(producer_epoch):
            self._note_highest(key.group, epochs)
            self._drop_gone()

    def discard(self, key: OffsetCommitKey) -> None:
        """Remove a pending offset, if there is one."""
        producer_epoch = self.epochs.pop(key, None)
        if producer_epoch is None:
            return
        epochs = self._groups[key.group]
        epochs.discard(producer_epoch)
        if epochs.counts:
            self._note_highest(key.group, epochs)
        else:
            del self._groups[key.group]
        self._drop_gone()

    def _drop_gone(self) -> None:
        ascending = self._ascending
        while ascending and self.find_epoch(ascending[0][1]) != ascending[0][0]:
            heappop(ascending)

    def _note_highest(self, group_id: GroupId, epochs: _GroupEpochs) -> None:
        noted = epochs.highest
        if epochs.noted != noted:
            epochs.noted = noted
            heappush(self._ascending, (noted, group_id))
            if len(self._ascending) > 2 * len(self._groups) + GONE_MAX:
                self._ascending = [(each.noted, name) for name, each in self._groups.items()]
                heapify(self._ascending)


class OpenTransactions:
    """The open transactions of one shard, in the order in which they began.

    A producer has an entry while it has pending offsets.
    """

    __slots__ = ("_groups", "_producers")

    def __init__(self) -> None:
        self._producers: dict[ProducerId, OpenTransaction] = {}
        self._groups: dict[GroupId, dict[OffsetPlace, set[ProducerId]]] = {}

    def __bool__(self) -> bool:
        return bool(self._producers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpenTransactions):
            return NotImplemented
        return self._producers == other._producers and self._groups == other._groups

    def __repr__(self) -> str:
        return f"OpenTransactions({self._producers})"

    def get(self, producer_id: ProducerId) -> OpenTransaction | None:
        """The open transaction of a producer."""
        return self._producers.get(producer_id)

    def producers(self) -> Iterator[tuple[ProducerId, OpenTransaction]]:
        """Every open transaction, the oldest first."""
        return iter(self._producers.items())

    def newest_first(self) -> Iterator[OpenTransaction]:
        """Every open transaction, the newest first."""
        return reversed(self._producers.values())

    def unstable(self, group_id: GroupId) -> Collection[OffsetPlace]:
        """The partitions for which the group has pending offsets."""
        return self._groups.get(group_id, ())

    def producers_of(self, key: OffsetCommitKey) -> Collection[ProducerId]:
        """The producers with a pending offset of this key."""
        return self._groups.get(key.group, {}).get((key.topic, key.partition), ())

    def has_group(self, group_id: GroupId) -> bool:
        """Whether the group has pending offsets, which keep it and its offsets from expiring."""
        return group_id in self._groups

    def group_ids(self) -> KeysView[GroupId]:
        """The groups with pending offsets."""
        return self._groups.keys()

    # ------------------------------------------------------------- changed by replay alone

    def add(
        self, producer_id: ProducerId, producer_epoch: int, key: OffsetCommitKey, since_ms: int
    ) -> None:
        """Add a pending offset; the first one of a producer opens a transaction at ``since_ms``.

        A record has that time.
        """
        transaction = self._producers.get(producer_id)
        if transaction is None:
            transaction = self._producers[producer_id] = OpenTransaction(since_ms)
        transaction.latest_first.clear()
        self._add(transaction, producer_id, producer_epoch, key)

    def add_imported(
        self, producer_id: ProducerId, epochs_and_times: Mapping[OffsetCommitKey, tuple[int, int]]
    ) -> None:
        """Add the pending offsets of an import, each with its epoch and wall time in ms."""
        first_ms = min(time_ms for _, time_ms in epochs_and_times.values())
        transaction = self._producers[producer_id] = OpenTransaction(first_ms)
        for key, (producer_epoch, time_ms) in epochs_and_times.items():
            self._add(transaction, producer_id, producer_epoch, key)
            transaction.latest_first.append((time_ms, key))
        transaction.latest_first.sort(key=itemgetter(0), reverse=True)

    def _add(
        self,
        transaction: OpenTransaction,
        producer_id: ProducerId,
        producer_epoch: int,
        key: OffsetCommitKey,
    ) -> None:
        transaction.add(key, producer_epoch)
        places = self._groups.setdefault(key.group, {})
        places.setdefault((key.topic, key.partition), set()).add(producer_id)

    def end(self, producer_id: ProducerId) -> Collection[OffsetCommitKey]:
        """End the producer's transaction; returns the keys of its pending offsets."""
        transaction = self._producers.pop(producer_id, None)
        if transaction is None:
            return ()
        for key in transaction.epochs:
            producers = self._groups[key.group][key.topic, key.partition]
            producers.discard(producer_id)
            if not producers:
                self._forget(key)
        return transaction.epochs.keys()

    def drop(self, key: OffsetCommitKey) -> None:
        """Remove the pending offsets of a key, of all producers: it was tombstoned."""
        places = self._groups.get(key.group)
        if places is None:
            return
        producers = places.get((key.topic, key.partition))
        if producers is None:
            return
        for producer_id in producers:
            transaction = self._producers[producer_id]
            transaction.discard(key)
            if not transaction.epochs:
                del self._producers[producer_id]
                continue
            waiting = transaction.latest_first
            while waiting and waiting[-1][1] not in transaction.epochs:
                waiting.pop()
            if waiting:
                transaction.since_ms = waiting[-1][0]
        self._forget(key)

    def _forget(self, key: OffsetCommitKey) -> None:
        places = self._groups[key.group]
        del places[key.topic, key.partition]
        if not places:
            del self._groups[key.group]
