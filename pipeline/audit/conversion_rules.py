"""S21: a group id has one type; a conversion is one write that keeps offsets and assignments."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    GroupMetadataKey,
    GroupMetadataValue,
)
from pipeline.audit.findings import add_violation
from pipeline.tables.histories.group_state import (
    CLASSIC,
    CONSUMER,
    GroupState,
    Place,
    read_classic_assignments,
    read_current_assignment,
)
from pipeline.tables.histories.rows import Rows
from pipeline.tables.histories.written_records import Change, LoggedRecord, OffsetChange

TopicNames = Mapping[bytes, str]
"""Names of topic ids, from commits that have both."""


class ConversionRules:
    """Follows what a write deletes of one group type and creates of the other."""

    def __init__(self, rows: Rows, names: TopicNames) -> None:
        self._rows = rows
        self._names = names
        self._classic: GroupMetadataValue | None = None
        self._left: LoggedRecord | None = None
        """The tombstone of a group that had members until this write."""
        self._left_type = ""
        self._members_left = 0
        """Members removed from the consumer group since its last epoch."""
        self._targets: dict[str, frozenset[Place]] = {}
        self._held: dict[str, frozenset[Place]] = {}
        self._offsets: list[OffsetChange] = []
        """Offsets deleted between the tombstone of the old type and the record of the new one."""
        self._upgraded: dict[str, frozenset[Place]] = {}
        self._last: LoggedRecord | None = None

    def see(self, state: GroupState, change: Change) -> None:
        if isinstance(change, OffsetChange):
            if change.is_deletion and (self._left is not None or self._members_left):
                self._offsets.append(change)
            return
        at, value = change.at, change.value
        self._last = at
        match change.key:
            case GroupMetadataKey():
                if isinstance(value, GroupMetadataValue):
                    self._see_classic(state, at, value)
                elif state.classic is not None and state.classic.members:
                    self._classic = state.classic
                    self._left, self._left_type = at, CLASSIC
            case ConsumerGroupMetadataKey():
                self._see_epoch(state, at, is_deletion=value is None)
            case ConsumerGroupMemberMetadataKey() if value is None:
                self._members_left += 1
            case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id) if value is None:
                self._targets[member_id] = state.targets.get(member_id, frozenset())
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
                if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
                    self._see_upgraded(member_id, at, value)
                elif (current := state.current_assignments.get(member_id)) is not None:
                    self._held[member_id] = frozenset(current.assigned)
            case _:
                pass

    def _see_epoch(self, state: GroupState, at: LoggedRecord, *, is_deletion: bool) -> None:
        if not is_deletion:
            if self._classic is not None:
                self._upgraded = dict(read_classic_assignments(self._classic))
                self._end_conversion(at)
        elif self._members_left or state.members:
            self._left, self._left_type = at, CONSUMER
        self._members_left = 0

    def _see_classic(self, state: GroupState, at: LoggedRecord, value: GroupMetadataValue) -> None:
        if self._left is None or self._left_type != CONSUMER:
            return
        for member_id, places in read_classic_assignments(value).items():
            known = [
                found[member_id] for found in (self._targets, self._held) if member_id in found
            ]
            if known and all(self._has_other(places, before) for before in known):
                detail = f"the conversion changes the partitions of {member_id}"
                add_violation(self._rows, "S21", at, detail)
        self._end_conversion(at)

    def _see_upgraded(
        self, member_id: str, at: LoggedRecord, value: ConsumerGroupCurrentMemberAssignmentValue
    ) -> None:
        """Check the first record of a member that was classic before this write."""
        before = self._upgraded.pop(member_id, None)
        if before is None:
            return
        after = frozenset(place for place, _ in read_current_assignment(value).held())
        if self._has_other(after, before):
            detail = f"the conversion changes the partitions of {member_id}"
            add_violation(self._rows, "S21", at, detail)

    def _has_other(self, after: Iterable[Place], before: Iterable[Place]) -> bool:
        """Whether a conversion adds partitions.

        Topics may be missing, because a conversion drops deleted topics. Classic members have
        topics by name, others by id: an id without a known name matches any topic with the same
        partitions.
        """
        now, then = self._by_topic(after), self._by_topic(before)
        for topic in now.keys() & then.keys():
            if now.pop(topic) != then.pop(topic):
                return True
        return any(
            _count_shapes(now, kind) - _count_shapes(then, other)
            for kind, other in ((str, bytes), (bytes, str))
        )

    def _by_topic(self, places: Iterable[Place]) -> dict[bytes | str, set[int]]:
        found: defaultdict[bytes | str, set[int]] = defaultdict(set)
        for topic, partition in places:
            name = self._names.get(topic, topic) if isinstance(topic, bytes) else topic
            found[name].add(partition)
        return dict(found)

    def _end_conversion(self, at: LoggedRecord) -> None:
        for change in self._offsets:
            detail = f"a conversion deletes the offset of {change.topic}-{change.partition}"
            add_violation(self._rows, "S21", change.at, detail)
        self._offsets.clear()
        self._left = self._classic = None

    def end_write(self, state: GroupState) -> None:
        types = state.types()
        if len(types) > 1 and self._last is not None:
            names = " and ".join(sorted(types))
            add_violation(self._rows, "S21", self._last, f"the group has two types: {names}")
        if self._left is not None:
            detail = (
                f"a {self._left_type} group with members is deleted, but the same write does not "
                "create its successor"
            )
            add_violation(self._rows, "S21", self._left, detail)
        self._left = self._classic = self._last = None
        self._members_left = 0
        for kept in (self._targets, self._held, self._upgraded):
            kept.clear()
        self._offsets.clear()

    def finish(self, state: GroupState) -> None:
        pass


def _count_shapes(by_topic: Mapping[bytes | str, set[int]], kind: type) -> Counter[tuple[int, ...]]:
    """For each list of partitions, how many topics of this kind of key have it."""
    return Counter(
        tuple(sorted(partitions))
        for topic, partitions in by_topic.items()
        if isinstance(topic, kind)
    )
