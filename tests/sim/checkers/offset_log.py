"""A naive fold of the log for offsets and transactions: what every fetch must say, exactly.

It shares no code with ``storage.log.fold`` or the store: names for keys, one dictionary for what is
visible and one for what waits. ``OffsetModel`` judges what the log may hold; this one that what is
shown is what the log holds (S13, S15, S16).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from model.ids import ZERO_TOPIC_ID, TopicId, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue, Record
from model.log.side_records import (
    ProducerGroupKey,
    ProducerGroupValue,
    ProducerStateKey,
    ProducerStateValue,
    SideKey,
    SideRecord,
    SideValue,
    TopicDeletionKey,
    TopicDeletionValue,
)
from model.log.transaction_records import TransactionalOffsets, TransactionMarker
from tests.sim.checkers.offset_model import OffsetPlace
from tests.support.log_entries import LogEntry


class Logged(NamedTuple):
    """A committed offset, and how far in the log it was written."""

    position: int
    offset: int
    commit_timestamp: int
    topic_id: TopicId = ZERO_TOPIC_ID
    """Zero for what was committed in a transaction."""


@dataclass
class OffsetLog:
    """All partitions. ``waiting`` is by partition and producer, with the epoch of the producer."""

    position: int = 0
    visible: dict[OffsetPlace, Logged] = field(default_factory=dict)
    waiting: dict[tuple[int, int], dict[OffsetPlace, tuple[Logged, int]]] = field(
        default_factory=dict
    )
    producers: dict[SideKey, SideValue] = field(default_factory=dict)
    deletions: dict[TopicId, TopicName] = field(default_factory=dict)
    """Topics whose offsets are still to be tombstoned."""

    def copy(self) -> OffsetLog:
        """One that goes its own way."""
        waiting = {producer: dict(found) for producer, found in self.waiting.items()}
        return OffsetLog(
            self.position, dict(self.visible), waiting, dict(self.producers), dict(self.deletions)
        )

    def apply(self, entries: Iterable[LogEntry], side: Iterable[SideRecord] = ()) -> None:
        """In the order of the log."""
        for partition, entry in entries:
            self.position += 1
            match entry:
                case TransactionalOffsets(producer_id, epoch, records):
                    waits = self.waiting.setdefault((partition, producer_id), {})
                    for record in records:
                        waits[_place_of(record.key)] = self._logged(record.value), epoch
                        self.position += 1
                case TransactionMarker(producer_id, _, _, committed):
                    self._end((partition, producer_id), committed)
                case Record(OffsetCommitKey() as key, value):
                    self._set(_place_of(key), value)
        for side_key, state in side:
            if isinstance(side_key, ProducerStateKey | ProducerGroupKey):
                self.producers.pop(side_key, None)
                if isinstance(state, ProducerStateValue | ProducerGroupValue):
                    self.producers[side_key] = state
            elif isinstance(side_key, TopicDeletionKey):
                self.deletions.pop(side_key.topic_id, None)
                if isinstance(state, TopicDeletionValue):
                    self.deletions[side_key.topic_id] = state.topic

    def _logged(self, value: Any) -> Logged:
        assert isinstance(value, OffsetCommitValue)
        return Logged(self.position, value.offset, value.commit_timestamp, value.topic_id)

    def _set(self, place: OffsetPlace, value: Any) -> None:
        if value is not None:
            self.visible[place] = self._logged(value)
            return
        self.visible.pop(place, None)
        for producer, waits in list(self.waiting.items()):
            waits.pop(place, None)
            if not waits:
                del self.waiting[producer]

    def _end(self, producer: tuple[int, int], committed: bool) -> None:
        for place, (logged, _) in self.waiting.pop(producer, {}).items():
            standing = self.visible.get(place)
            if committed and (standing is None or standing.position < logged.position):
                self.visible[place] = logged

    # --------------------------------------------------------------------------------- looking

    def is_of_deleted_topic(self, place: OffsetPlace, logged: Logged) -> bool:
        """Whether it may be of a topic that is being deleted: nobody is to see it any more."""
        deleted = [topic_id for topic_id, name in self.deletions.items() if name == place[1]]
        return bool(deleted) and logged.topic_id in (ZERO_TOPIC_ID, *deleted)

    def is_waiting(self, place: OffsetPlace) -> bool:
        """Whether a marker is awaited for it."""
        return any(place in waits for waits in self.waiting.values())

    def has_group(self, group: str) -> bool:
        """Whether the group has anything, visible or not."""
        return any(place[0] == group for place in self.visible) or self.waits_for_group(group)

    def waits_for_group(self, group: str) -> bool:
        """Whether a marker is awaited for any of its offsets."""
        return any(place[0] == group for waits in self.waiting.values() for place in waits)

    def describe_waiting(self) -> Mapping[tuple[int, int], Mapping[OffsetPlace, int]]:
        """By partition and producer what waits, with the producer's epoch."""
        return {
            producer: {place: epoch for place, (_, epoch) in waits.items()}
            for producer, waits in self.waiting.items()
        }


def _place_of(key: Any) -> OffsetPlace:
    assert isinstance(key, OffsetCommitKey)
    return key.group, key.topic, key.partition
