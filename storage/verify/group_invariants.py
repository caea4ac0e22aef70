"""The invariants of groups over a history of records: S1, S3, S5, S6 and S19.

A naive replay by names, which shares no code with the coordinator's. A compacted log lacks what
was superseded: there a group may have members before its epoch comes, so only what is known is
compared with each other. What compaction left is all of one moment, so what is known fits
together. A tombstone stays for a while where it was written, also one of the type that a group had
before it was converted, and what the group has been since may all be further back: whether it is
gone, and what it left, is known at the end of the log.
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
"""Whether offsets of a group count that were committed before an offset of the log."""

_STATIC_LEAVE_EPOCH = -2
_GROUP_KEYS = (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    ShareGroupMetadataKey,
    StreamsGroupMetadataKey,
)
"""A group has one record of one of these, and is gone with it."""


@dataclass(slots=True)
class _Standing:
    """Where a member stands; ``held`` are partitions with their epochs."""

    epoch: int
    held: dict[Place, int]


@dataclass(slots=True)
class _Group:
    """``epoch`` and ``target_epoch`` are ``None`` where no record has told them."""

    epoch: int | None = None
    target_epoch: int | None = None
    members: set[MemberId] = field(default_factory=set)
    targets: set[MemberId] = field(default_factory=set)
    standings: dict[MemberId, _Standing] = field(default_factory=dict)
    holders: dict[Place, list[MemberId]] = field(default_factory=dict)
    last_offset: int = -1
    last_key: bytes = b""

    @property
    def is_ghost(self) -> bool:
        """Whether it is parts of a group without a group.

        The epoch of a group begins at 1 without a record, and stays there as long as no member
        subscribes to anything: then there is nothing but its members.
        """
        if self.epoch is not None:
            return False
        is_of_members = self.members >= self.targets | self.standings.keys()
        return not (self.members and is_of_members and self.target_epoch is None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there but, maybe, an epoch."""
        return not (self.members or self.targets or self.standings)


class GroupHistory:
    """Follows the groups of one partition.

    ``apply`` takes each record that is no offset, and ``end_write`` is called when all that was
    written at once has been applied, which ``finish`` ends. All raise ``LogViolation``. Below
    ``dense_from`` the log may be compacted; ``None`` where it may be everywhere.
    """

    def __init__(self, dense_from: int | None) -> None:
        self._dense_from = dense_from
        self._groups: dict[GroupId, _Group] = {}
        self._others: set[tuple[type, GroupId]] = set()
        """Groups of other types, by the type of their key."""
        self._deleted: set[GroupId] = set()
        self._changed: dict[GroupId, set[MemberId]] = {}
        self._contested: dict[GroupId, set[Place]] = {}
        self._gone: dict[GroupId, tuple[int, bytes]] = {}
        self._maybe_gone: dict[GroupId, tuple[int, bytes]] = {}
        """Where the log may be compacted: the last tombstone of a group, of whatever type."""

    def group_ids(self) -> set[GroupId]:
        """The groups that have more than offsets."""
        return self._groups.keys() | {group_id for _, group_id in self._others}

    def apply(self, record: Record, offset: int, key_bytes: bytes) -> None:
        """One record at its offset."""
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
                self._apply_standing(group, key, value, offset, key_bytes)
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

    def _apply_standing(
        self,
        group: _Group,
        key: ConsumerGroupCurrentMemberAssignmentKey,
        value: ConsumerGroupCurrentMemberAssignmentValue,
        offset: int,
        key_bytes: bytes,
    ) -> None:
        member_id, epoch = key.member_id, value.member_epoch
        before = group.standings.get(member_id)
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
                        "S1", f"partition {_name(place)} is held twice", offset, key_bytes
                    )
                if 0 <= epoch < place_epoch:
                    raise LogViolation(
                        "S3",
                        f"partition {_name(place)} has epoch {place_epoch}, above its holder's "
                        f"{epoch}",
                        offset,
                        key_bytes,
                    )
                held[place] = place_epoch
        group.standings[member_id] = _Standing(epoch, held)
        self._changed[key.group_id].add(member_id)
        for place in held:
            holders = group.holders.setdefault(place, [])
            holders.append(member_id)
            if len(holders) > 1:
                self._contested.setdefault(key.group_id, set()).add(place)

    # ---------------------------------------------------------------------------------- checks

    def end_write(self, has_offsets: HasOffsets) -> None:
        """All that was written at once is applied; ``has_offsets`` tells of the log up to here."""
        if not (self._changed or self._gone):
            return
        for group_id, places in self._contested.items():
            self._check_holders(group_id, places)
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
        """The log is at its end: nothing that would explain a group is still to come."""
        self.end_write(has_offsets)
        for group_id, (offset, key) in self._maybe_gone.items():
            self._check_gone(group_id, offset, key, has_offsets)
        for group_id, group in self._groups.items():
            if group.is_ghost and (ConsumerGroupMetadataKey, group_id) not in self._others:
                raise LogViolation(
                    "S19",
                    "a group has members or a target, and no epoch",
                    group.last_offset,
                    group.last_key,
                )

    def _exists(self, group_id: GroupId) -> bool:
        return group_id in self._groups or any(
            (kind, group_id) in self._others for kind in _GROUP_KEYS
        )

    def _check_holders(self, group_id: GroupId, places: set[Place]) -> None:
        group = self._groups.get(group_id, _Group())
        for place in places:
            holders = group.holders.get(place, [])
            if len(holders) > 1:
                raise LogViolation(
                    "S1",
                    f"partition {_name(place)} is held by {holders[0]} and {holders[1]}",
                    group.last_offset,
                    group.last_key,
                )

    def _check_epochs(self, group_id: GroupId, members: set[MemberId]) -> None:
        group = self._groups[group_id]
        where = group.last_offset, group.last_key
        is_back = group_id in self._deleted and not self._may_be_compacted(group.last_offset)
        if is_back and group.is_ghost:
            raise LogViolation("S19", "a deleted group has come back without an epoch", *where)
        target, epoch = group.target_epoch, group.epoch
        if target is not None and epoch is not None and target > epoch:
            raise LogViolation(
                "S6", f"assignment epoch {target} is above group epoch {epoch}", *where
            )
        limit = epoch if target is None else target
        for member_id in members:
            standing = group.standings.get(member_id)
            if standing is not None and limit is not None and standing.epoch > limit:
                name = "group" if target is None else "assignment"
                raise LogViolation(
                    "S6",
                    f"{member_id} is at epoch {standing.epoch}, above {name} epoch {limit}",
                    *where,
                )


class NoHistory(GroupHistory):
    """Looks at nothing."""

    def __init__(self) -> None:
        super().__init__(None)

    def apply(self, record: Record, offset: int, key_bytes: bytes) -> None:
        """Any record may follow any other."""


def _compute_group_id(key: Any) -> GroupId:
    """Of a key that a group has one of."""
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
    standing = group.standings.pop(member_id, None)
    for place in standing.held if standing is not None else ():
        holders = group.holders[place]
        holders.remove(member_id)
        if not holders:
            del group.holders[place]


def _read_places(
    topics: tuple[AssignedTopicPartitions, ...], member_epoch: int, offset: int, key: bytes
) -> list[tuple[Place, int]]:
    """Partitions with their epochs; before Kafka 4.3 the member's own stands for them."""
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
