"""The offsets of open transactions: for which partitions of which group a marker is awaited.

The offsets themselves are in the store; here is noted whose there are.
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
"""So many epochs that are gone may be kept beside as many again as there are."""

OffsetPlace: TypeAlias = tuple[TopicName, int]
"""A topic and a partition of it."""


class _GroupEpochs:
    """How many of the offsets that wait in one group have which epoch.

    ``descending`` has each epoch that there is, negative, and behind the first some that are gone.
    """

    __slots__ = ("counts", "descending", "noted")

    def __init__(self) -> None:
        self.noted = -1
        """The highest that the transaction has noted."""
        self.counts: dict[int, int] = {}
        self.descending: list[int] = []

    @property
    def highest(self) -> int:
        return -self.descending[0]

    def add(self, epoch: int) -> bool:
        """Whether it is the first of its epoch."""
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
    """When a transaction times out (monotonic ms); soft, and the shell's alone."""

    at_ms: int | None = None


@dataclass(slots=True)
class OpenTransaction:
    """One producer's: the offsets that wait, each with the epoch of the producer that wrote it.

    ``since_ms`` is the wall time from which on it is open. Where no record says since when, as in
    what was imported, it is since the first of the offsets that still wait: ``latest_first`` has
    them, with their times. What is said of groups is kept beside ``epochs``, so that a commit is
    not looked for among all.
    """

    since_ms: int
    epochs: dict[OffsetCommitKey, int] = field(default_factory=dict)
    _groups: dict[GroupId, _GroupEpochs] = field(default_factory=dict, compare=False, repr=False)
    _ascending: list[tuple[int, GroupId]] = field(default_factory=list, compare=False, repr=False)
    """The highest epoch of each group, and behind the lowest some that are not any more."""
    latest_first: list[tuple[int, OffsetCommitKey]] = field(default_factory=list, compare=False)
    timeout: Timeout = field(default_factory=Timeout, compare=False)

    def group_epochs(self) -> dict[GroupId, int]:
        """The highest epoch of what waits in each group."""
        return {group_id: epochs.highest for group_id, epochs in self._groups.items()}

    def find_epoch(self, group_id: GroupId) -> int | None:
        """The highest epoch of what waits in the group; ``None`` where nothing does."""
        epochs = self._groups.get(group_id)
        return None if epochs is None else epochs.highest

    @property
    def producer_epoch(self) -> int:
        """The epoch that its marker has at least, that of the group with the lowest."""
        return self._ascending[0][0]

    def add(self, key: OffsetCommitKey, producer_epoch: int) -> None:
        """An offset waits, in the place of what waited under its key."""
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
        """It waits no more, if it did."""
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
    """All of one shard. A producer is in it as long as there is an offset that waits for it.

    Transactions are in the order in which they began.
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

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OpenTransactions({self._producers})"

    def get(self, producer_id: ProducerId) -> OpenTransaction | None:
        """The transaction of a producer."""
        return self._producers.get(producer_id)

    def producers(self) -> Iterator[tuple[ProducerId, OpenTransaction]]:
        """Every open transaction, the oldest first."""
        return iter(self._producers.items())

    def newest_first(self) -> Iterator[OpenTransaction]:
        """Every open transaction."""
        return reversed(self._producers.values())

    def unstable(self, group_id: GroupId) -> Collection[OffsetPlace]:
        """The places of a group for which a marker is awaited; empty where there is none."""
        return self._groups.get(group_id, ())

    def producers_of(self, key: OffsetCommitKey) -> Collection[ProducerId]:
        """The producers for whose markers an offset waits."""
        return self._groups.get(key.group, {}).get((key.topic, key.partition), ())

    def has_group(self, group_id: GroupId) -> bool:
        """Whether the group has offsets that wait: it must not be removed, nor they expire."""
        return group_id in self._groups

    def group_ids(self) -> KeysView[GroupId]:
        """The groups that have offsets that wait."""
        return self._groups.keys()

    # ------------------------------------------------------------- changed by replay alone

    def add(
        self, producer_id: ProducerId, producer_epoch: int, key: OffsetCommitKey, since_ms: int
    ) -> None:
        """An offset waits; if it is the first of its transaction, that is open since then.

        A record says since when.
        """
        transaction = self._producers.get(producer_id)
        if transaction is None:
            transaction = self._producers[producer_id] = OpenTransaction(since_ms)
        transaction.latest_first.clear()
        self._add(transaction, producer_id, producer_epoch, key)

    def add_imported(
        self, producer_id: ProducerId, epochs_and_times: Mapping[OffsetCommitKey, tuple[int, int]]
    ) -> None:
        """Offsets wait, each with its epoch and wall time: no record says since when."""
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
        """The producer's transaction is over. What waited for it."""
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
        """A tombstone was written: nothing waits for this offset any more."""
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
