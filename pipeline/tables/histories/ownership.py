"""Intervals in which a member owned a partition, from the records."""

from __future__ import annotations

from dataclasses import dataclass

from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
)
from pipeline.tables.histories.group_state import (
    CLASSIC,
    CONSUMER,
    GroupState,
    Place,
    read_classic_assignments,
    show_topic_id,
)
from pipeline.tables.histories.history_tables import PARTITION_OWNERSHIP
from pipeline.tables.histories.rows import Rows, to_timestamp
from pipeline.tables.histories.written_records import Change, GroupRecord, LoggedRecord

_Owner = tuple[str, str]
"""Group type and member id: a converted member is two owners in succession."""


@dataclass(frozen=True, slots=True)
class _Interval:
    since: LoggedRecord
    epoch: int


class OwnershipRows:
    """A row for each interval in which a member owned a partition, assigned or pending revocation.

    A write counts as a whole, so a partition that passes from one member to another in one write
    never has two owners.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._open: dict[_Owner, dict[Place, _Interval]] = {}
        self._changed: dict[str, LoggedRecord] = {}
        """Members of the consumer group whose assignment changed, with the record that did it."""
        self._classic_changed: LoggedRecord | None = None

    def see(self, state: GroupState, change: Change) -> None:
        if not isinstance(change, GroupRecord):
            return
        match change.key:
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
                self._changed[member_id] = change.at
            case ConsumerGroupMemberMetadataKey(member_id=member_id) if change.value is None:
                if member_id in state.current_assignments:
                    self._changed[member_id] = change.at
            case ConsumerGroupMetadataKey() if change.value is None:
                self._changed.update(dict.fromkeys(state.current_assignments, change.at))
            case GroupMetadataKey():
                self._classic_changed = change.at
            case _:
                pass

    def end_write(self, state: GroupState) -> None:
        if self._classic_changed is not None:
            self._end_classic_write(state, self._classic_changed)
            self._classic_changed = None
        for member_id, at in self._changed.items():
            current = state.current_assignments.get(member_id)
            places = {} if current is None else dict(current.held())
            self._hold((CONSUMER, member_id), places, at)
        self._changed.clear()

    def _end_classic_write(self, state: GroupState, at: LoggedRecord) -> None:
        classic = state.classic
        held = {} if classic is None else read_classic_assignments(classic)
        generation = 0 if classic is None else classic.generation
        before = {member_id for group_type, member_id in self._open if group_type == CLASSIC}
        for member_id in sorted(before | held.keys()):
            places = dict.fromkeys(held.get(member_id, ()), generation)
            self._hold((CLASSIC, member_id), places, at)

    def _hold(self, owner: _Owner, places: dict[Place, int], at: LoggedRecord) -> None:
        held = self._open.setdefault(owner, {})
        for place in held.keys() - places.keys():
            self._add(owner, place, held.pop(place), at)
        for place, epoch in places.items():
            if place not in held:
                held[place] = _Interval(at, epoch)
        if not held:
            del self._open[owner]

    def finish(self, state: GroupState) -> None:
        for owner, held in self._open.items():
            for place, interval in held.items():
                self._add(owner, place, interval, None)

    def _add(
        self, owner: _Owner, place: Place, interval: _Interval, end: LoggedRecord | None
    ) -> None:
        topic, partition = place
        since = interval.since
        self._rows.add(
            PARTITION_OWNERSHIP,
            since,
            topic=topic if isinstance(topic, str) else None,
            topic_id=show_topic_id(topic) if isinstance(topic, bytes) else None,
            partition=partition,
            member_id=owner[1],
            assignment_epoch=interval.epoch,
            valid_from=to_timestamp(since.ts_ms),
            valid_to=None if end is None else to_timestamp(end.ts_ms),
            from_write=since.base_offset,
            to_write=None if end is None else end.base_offset,
            to_offset=None if end is None else end.offset,
        )
