"""Invariants S1, S3, S5, S6 and S19 of groups over the records of one log partition.

A naive replay by names, which shares no code with the coordinator's. A compacted log lacks
superseded records: members may come before their group's epoch, so only known values are compared.
Compaction keeps the latest record of each key, so the known values are consistent. A tombstone may
outlive the records after it, also a tombstone of the group's type before a conversion. So whether a
group in the compacted part is deleted, and what it left behind, is checked at the end of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from model.ids import GroupId, MemberId, TopicId
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    Record,
    UnknownValue,
)
from model.log.share_records import ShareGroupMetadataKey
from model.log.streams_records import StreamsGroupMetadataKey
from storage.verify.violation import LogViolation

Place = tuple[TopicId, int]
HasOffsets = Callable[[GroupId, int], bool]
"""Whether a group has offsets that were committed before this log offset."""

_STATIC_LEAVE_EPOCH = -2
_GROUP_KEYS = (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    ShareGroupMetadataKey,
    StreamsGroupMetadataKey,
)
"""Keys of which a group has one record, and whose tombstone deletes the group."""


@dataclass(slots=True)
class _CurrentAssignment:
    """A member's epoch, and the partitions it owns with their assignment epochs."""

    epoch: int
    held: dict[Place, int]


@dataclass(slots=True)
class _Group:
    """``epoch`` and ``target_epoch`` are ``None`` until a record sets them."""

    epoch: int | None = None
    target_epoch: int | None = None
    members: set[MemberId] = field(default_factory=set)
    targets: set[MemberId] = field(default_factory=set)
    current_assignments: dict[MemberId, _CurrentAssignment] = field(default_factory=dict)
    owners: dict[Place, list[MemberId]] = field(default_factory=dict)
    last_offset: int = -1
    last_key: bytes = b""

    @property
    def is_ghost(self) -> bool:
        """Whether parts of a group exist without the group.

        A group is at epoch 1 without a record until a member subscribes to a topic: until then its
        members' records are all there is.
        """
        if self.epoch is not None:
            return False
        is_of_members = self.members >= self.targets | self.current_assignments.keys()
        return not (self.members and is_of_members and self.target_epoch is None)

    @property
    def is_empty(self) -> bool:
        """Whether the group has no records, or its epoch's alone."""
        return not (self.members or self.targets or self.current_assignments)


class GroupHistory:
    """Follows the groups of one partition.

    Call ``apply`` for each record that is not an offset, ``end_write`` after each atomic write, and
    ``finish`` at the end. All raise ``LogViolation``. The log may be compacted below
    ``dense_from``, or everywhere if it is ``None``.
    """

    def __init__(self, dense_from: int | None) -> None:
        self._dense_from = dense_from
        self._groups: dict[GroupId, _Group] = {}
        self._others: set[tuple[type, GroupId]] = set()
        """Groups of other types, with the type of their key."""
        self._deleted: set[GroupId] = set()
        self._changed: dict[GroupId, set[MemberId]] = {}
        self._contested: dict[GroupId, set[Place]] = {}
        self._gone: dict[GroupId, tuple[int, bytes]] = {}
        self._maybe_gone: dict[GroupId, tuple[int, bytes]] = {}
        """In the compacted part: the last tombstone of each group, of any type."""

    def group_ids(self) -> set[GroupId]:
        """Groups that have more than offsets."""
        return self._groups.keys() | {group_id for _, group_id in self._others}

    def apply(self, record: Record, offset: int, key_bytes: bytes) -> None:
        """Apply the record at ``offset``."""
        key, value = record
        if isinstance(value, UnknownValue):
            if isinstance(key, _GROUP_KEYS):
                self._others.add((type(key), _compute_group_id(key)))
            return
        match key:
            case ConsumerGroupMetadataKey():
                self._apply_epoch(key.group_id, value, offset, key_bytes)
            case GroupMetadataKey():
                self._apply_other(GroupMetadataKey, key.group, value, offset, key_bytes)
            case ShareGroupMetadataKey() | StreamsGroupMetadataKey():
                self._apply_other(type(key), key.group_id, value, offset, key_bytes)
            case (
                ConsumerGroupTargetAssignmentMetadataKey()
                | ConsumerGroupMemberMetadataKey()
                | ConsumerGroupTargetAssignmentMemberKey()
                | ConsumerGroupCurrentMemberAssignmentKey()
            ):
                self._apply_part(key, value, offset, key_bytes)
            case _:
                pass

    def _apply_other(
        self, kind: type, group_id: GroupId, value: Any, offset: int, key: bytes
    ) -> None:
        if value is None:
            self._others.discard((kind, group_id))
            self._gone[group_id] = offset, key
        else:
            self._others.add((kind, group_id))

    def _apply_epoch(self, group_id: GroupId, value: Any, offset: int, key: bytes) -> None:
        self._others.discard((ConsumerGroupMetadataKey, group_id))
        if value is None:
            self._groups.pop(group_id, None)
            self._changed.pop(group_id, None)
            self._contested.pop(group_id, None)
            self._deleted.add(group_id)
            self._gone[group_id] = offset, key
            return
        assert isinstance(value, ConsumerGroupMetadataValue)
        group = self._open(group_id, offset, key)
        _check_growth("group epoch", group.epoch, value.epoch, offset, key)
        group.epoch = value.epoch
        self._deleted.discard(group_id)

    def _open(self, group_id: GroupId, offset: int, key: bytes) -> _Group:
        group = self._groups.setdefault(group_id, _Group())
        group.last_offset, group.last_key = offset, key
        self._changed.setdefault(group_id, set())
        return group

    def _apply_part(self, key: Any, value: Any, offset: int, key_bytes: bytes) -> None:
        group_id: GroupId = key.group_id
        if value is None and group_id not in self._groups:
            return
        group = self._open(group_id, offset, key_bytes)
        match key:
            case ConsumerGroupTargetAssignmentMetadataKey():
                self._apply_target_epoch(group, value, offset, key_bytes)
            case ConsumerGroupTargetAssignmentMemberKey():
                _keep(group.targets, key.member_id, value is not None)
            case ConsumerGroupMemberMetadataKey():
                _keep(group.members, key.member_id, value is not None)
                if value is None:
                    group.targets.discard(key.member_id)
                    _release(group, key.member_id)
            case _ if value is None:
                _release(group, key.member_id)
            case _:
                self._apply_current_assignment(group, key, value, offset, key_bytes)
        if value is None and group.is_empty and group.epoch is None and group.target_epoch is None:
            del self._groups[group_id]
            self._changed.pop(group_id, None)

    def _apply_target_epoch(self, group: _Group, value: Any, offset: int, key: bytes) -> None:
        if value is None:
            group.target_epoch = None
            return
        assert isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
        epoch = value.assignment_epoch
        _check_growth("assignment epoch", group.target_epoch, epoch, offset, key)
        group.target_epoch = epoch

    def _apply_current_assignment(
        self,
        group: _Group,
        key: ConsumerGroupCurrentMemberAssignmentKey,
        value: ConsumerGroupCurrentMemberAssignmentValue,
        offset: int,
        key_bytes: bytes,
    ) -> None:
        member_id, epoch = key.member_id, value.member_epoch
        before = group.current_assignments.get(member_id)
        if epoch < _STATIC_LEAVE_EPOCH:
            raise LogViolation("S5", f"a member has epoch {epoch}", offset, key_bytes)
        if before is not None and before.epoch >= 0 and epoch >= 0:
            _check_growth("member epoch", before.epoch, epoch, offset, key_bytes)
        _release(group, member_id)
        held: dict[Place, int] = {}
        for topics in (value.assigned_partitions, value.partitions_pending_revocation):
            for place, place_epoch in _read_places(topics, epoch, offset, key_bytes):
                if place in held:
                    raise LogViolation(
                        "S1", f"partition {_name(place)} is owned twice", offset, key_bytes
                    )
                if 0 <= epoch < place_epoch:
                    raise LogViolation(
                        "S3",
                        f"partition {_name(place)} has epoch {place_epoch}, above its owner's "
                        f"{epoch}",
                        offset,
                        key_bytes,
                    )
                held[place] = place_epoch
        group.current_assignments[member_id] = _CurrentAssignment(epoch, held)
        self._changed[key.group_id].add(member_id)
        for place in held:
            owners = group.owners.setdefault(place, [])
            owners.append(member_id)
            if len(owners) > 1:
                self._contested.setdefault(key.group_id, set()).add(place)

    # ---------------------------------------------------------------------------------- checks

    def end_write(self, has_offsets: HasOffsets) -> None:
        """Check what one atomic write left; ``has_offsets`` knows the log up to here."""
        if not (self._changed or self._gone):
            return
        for group_id, places in self._contested.items():
            self._check_owners(group_id, places)
        for group_id, members in self._changed.items():
            self._check_epochs(group_id, members)
        for group_id, (offset, key) in self._gone.items():
            if self._may_be_compacted(offset):
                self._maybe_gone[group_id] = offset, key
            else:
                self._maybe_gone.pop(group_id, None)
                self._check_gone(group_id, offset, key, has_offsets)
        self._contested.clear()
        self._changed.clear()
        self._gone.clear()

    def _may_be_compacted(self, offset: int) -> bool:
        return self._dense_from is None or offset < self._dense_from

    def _check_gone(
        self, group_id: GroupId, offset: int, key: bytes, has_offsets: HasOffsets
    ) -> None:
        if not self._exists(group_id) and has_offsets(group_id, offset):
            raise LogViolation("S19", "a deleted group still has offsets", offset, key)

    def finish(self, has_offsets: HasOffsets) -> None:
        """Check what only the end of the log can tell."""
        self.end_write(has_offsets)
        for group_id, (offset, key) in self._maybe_gone.items():
            self._check_gone(group_id, offset, key, has_offsets)
        for group_id, group in self._groups.items():
            if group.is_ghost and (ConsumerGroupMetadataKey, group_id) not in self._others:
                raise LogViolation(
                    "S19",
                    "a group has members or a target, but no epoch",
                    group.last_offset,
                    group.last_key,
                )

    def _exists(self, group_id: GroupId) -> bool:
        return group_id in self._groups or any(
            (kind, group_id) in self._others for kind in _GROUP_KEYS
        )

    def _check_owners(self, group_id: GroupId, places: set[Place]) -> None:
        group = self._groups.get(group_id, _Group())
        for place in places:
            owners = group.owners.get(place, [])
            if len(owners) > 1:
                raise LogViolation(
                    "S1",
                    f"partition {_name(place)} is owned by {owners[0]} and {owners[1]}",
                    group.last_offset,
                    group.last_key,
                )

    def _check_epochs(self, group_id: GroupId, members: set[MemberId]) -> None:
        group = self._groups[group_id]
        where = group.last_offset, group.last_key
        is_back = group_id in self._deleted and not self._may_be_compacted(group.last_offset)
        if is_back and group.is_ghost:
            raise LogViolation("S19", "a deleted group has records again, but no epoch", *where)
        target, epoch = group.target_epoch, group.epoch
        if target is not None and epoch is not None and target > epoch:
            raise LogViolation(
                "S6", f"assignment epoch {target} is above group epoch {epoch}", *where
            )
        limit = epoch if target is None else target
        for member_id in members:
            current = group.current_assignments.get(member_id)
            if current is not None and limit is not None and current.epoch > limit:
                name = "group" if target is None else "assignment"
                raise LogViolation(
                    "S6",
                    f"{member_id} is at epoch {current.epoch}, above {name} epoch {limit}",
                    *where,
                )


class NoHistory(GroupHistory):
    """Checks nothing."""

    def __init__(self) -> None:
        super().__init__(None)

    def apply(self, record: Record, offset: int, key_bytes: bytes) -> None:
        """Accept any record."""


def _compute_group_id(key: Any) -> GroupId:
    """The group of a key in ``_GROUP_KEYS``."""
    group_id: GroupId = key.group if isinstance(key, GroupMetadataKey) else key.group_id
    return group_id


def _check_growth(name: str, before: int | None, epoch: int, offset: int, key: bytes) -> None:
    if epoch < 0:
        raise LogViolation("S5", f"{name} {epoch}", offset, key)
    if before is not None and epoch < before:
        raise LogViolation("S5", f"{name} {before}, then {epoch}", offset, key)


def _keep(members: set[MemberId], member_id: MemberId, is_there: bool) -> None:
    if is_there:
        members.add(member_id)
    else:
        members.discard(member_id)


def _release(group: _Group, member_id: MemberId) -> None:
    current = group.current_assignments.pop(member_id, None)
    for place in current.held if current is not None else ():
        owners = group.owners[place]
        owners.remove(member_id)
        if not owners:
            del group.owners[place]


def _read_places(
    topics: tuple[AssignedTopicPartitions, ...], member_epoch: int, offset: int, key: bytes
) -> list[tuple[Place, int]]:
    """Partitions with their assignment epochs: the member's, in records older than Kafka 4.3."""
    found: list[tuple[Place, int]] = []
    for topic in topics:
        epochs = topic.assignment_epochs or (member_epoch,) * len(topic.partitions)
        if len(epochs) != len(topic.partitions):
            raise LogViolation(
                "S3", f"{len(topic.partitions)} partitions with {len(epochs)} epochs", offset, key
            )
        found += (
            ((topic.topic_id, partition), epoch)
            for partition, epoch in zip(topic.partitions, epochs, strict=True)
        )
    return found


def _name(place: Place) -> str:
    return f"{place[0].hex()}-{place[1]}"
