"""Invariants of a consumer group that the records of a command must keep: checked before replay.

Each is checked for what the records change, and for what their members had before: the cost is that
of the records, whatever the size of the group. A violation is a bug of the handlers, or damage to
the memory; nothing of the command is replayed then. What was wrong in a log that was imported is
none of the command's doing (``is_sound``).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, NO_NUMBERS, Member
from coordinator.core.state.shard import Shard
from model.ids import GroupId, MemberId, TopicId
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    Record,
    TopicPartitions,
)
from model.value import value

ONE_OWNER: Final = "one_owner"
ONE_TARGET: Final = "one_target"
EPOCH_ORDER: Final = "epoch_order"
ONE_MEMBER_PER_INSTANCE: Final = "one_member_per_instance"
NOT_CHECKED: Final = "not_checked"
INVARIANTS: Final = (ONE_OWNER, ONE_TARGET, EPOCH_ORDER, ONE_MEMBER_PER_INSTANCE, NOT_CHECKED)
"""S1, S4, S5 with S6, and S24 of the specification, and a state in which they cannot be checked."""

_Current: TypeAlias = dict[MemberId, ConsumerGroupCurrentMemberAssignmentValue]
_Targets: TypeAlias = dict[MemberId, ConsumerGroupTargetAssignmentMemberValue]
_Metadata: TypeAlias = dict[MemberId, ConsumerGroupMemberMetadataValue | None]
_Parts: TypeAlias = tuple[AssignedTopicPartitions, ...] | tuple[TopicPartitions, ...]

_NO_GROUP: Final = ConsumerGroup(GroupId(""))


@value
class Violation:
    """An invariant that records would violate, and how."""

    invariant: str
    detail: str


def find_violation(shard: Shard, group_id: GroupId, records: Sequence[Record]) -> Violation | None:
    """The first invariant that does not hold once these records are replayed."""
    group = shard.consumer_groups.get(group_id, _NO_GROUP)
    was_sound = group_id not in shard.soft.unsound_groups
    if was_sound and len(records) <= 2 and _are_plain(group, records):
        return None
    current: _Current = {}
    targets: _Targets = {}
    metadata: _Metadata = {}
    left: list[MemberId] = []
    untargeted: list[MemberId] = []
    epoch = target_epoch = None
    for key, said in records:
        # Not ``match``: this is done for each record that is written.
        kind = type(key)
        if kind is ConsumerGroupCurrentMemberAssignmentKey:
            _put(current, left, key.member_id, said)  # type: ignore[union-attr]
        elif kind is ConsumerGroupTargetAssignmentMemberKey:
            _put(targets, untargeted, key.member_id, said)  # type: ignore[union-attr]
        elif kind is ConsumerGroupMemberMetadataKey:
            metadata[key.member_id] = said  # type: ignore[union-attr, assignment]
        elif kind is ConsumerGroupMetadataKey:
            if said is None:
                return None  # The group goes: what is left of it has no owner.
            epoch = said.epoch  # type: ignore[union-attr]
        elif kind is ConsumerGroupTargetAssignmentMetadataKey and said is not None:
            target_epoch = said.assignment_epoch  # type: ignore[union-attr]
    for member_id in [each for each, its_own in metadata.items() if its_own is None]:
        _put(current, left, member_id, None)
        _put(targets, untargeted, member_id, None)
    found = _find_epoch_out_of_order(group, epoch, target_epoch, current, was_sound=was_sound)
    if current and found is None:
        found = _find_second(group, ONE_OWNER, current, left, was_sound=was_sound)
    if targets and found is None:
        found = _find_second(group, ONE_TARGET, targets, untargeted, was_sound=was_sound)
    return found or _find_second_of_instance(group, metadata)


def _are_plain(group: ConsumerGroup, records: Sequence[Record]) -> bool:
    """Whether these are what most commands write, a step or a join of a member, with nothing wrong.

    ``False`` says nothing: this is but the fast way to find nothing.
    """
    key, said = records[0]
    if type(said) is ConsumerGroupCurrentMemberAssignmentValue:
        return len(records) == 1 and _is_plain_step(group, key.member_id, said)  # type: ignore[union-attr]
    if type(said) is not ConsumerGroupMemberMetadataValue or said.instance_id is not None:
        return False
    last = records[-1].value
    return (
        type(last) is ConsumerGroupMetadataValue
        and group.target_epoch <= group.group_epoch <= last.epoch
    )


def _is_plain_step(
    group: ConsumerGroup, member_id: MemberId, said: ConsumerGroupCurrentMemberAssignmentValue
) -> bool:
    member = group.entries.get(member_id)
    if (
        member is None
        or said.partitions_pending_revocation
        or not member.member_epoch <= said.member_epoch <= group.target_epoch <= group.group_epoch
        or not _owns_what_it_has(member, group.owner)
    ):
        return False
    get_owner, free = group.owner.__getitem__, {member.slot, NOBODY}
    for topic in said.assigned_partitions:
        ranges, partitions = group.numbers.ranges(topic.topic_id), topic.partitions
        if len(ranges) != 1 or not partitions or max(partitions) >= ranges[0].size:
            return False
        base = ranges[0].base
        numbers = [base + each for each in partitions] if base else partitions
        if not free.issuperset(map(get_owner, numbers)):
            return False
    return True


def _put(
    found: dict[MemberId, Any], gone: list[MemberId], member_id: MemberId, said: object
) -> None:
    """The last record of a member counts."""
    if said is not None:
        found[member_id] = said
        return
    found.pop(member_id, None)
    gone.append(member_id)


def is_sound(group: ConsumerGroup) -> bool:
    """Whether epochs are in order, and partitions had by one member each, after a load."""
    owned, given, target_epoch = 0, 0, group.target_epoch
    for member in group.entries.values():
        if member.member_epoch > target_epoch:
            return False
        owned += len(member.assigned) + len(member.pending_revocation)
        given += len(member.target or NO_NUMBERS)
    return (
        target_epoch <= group.group_epoch
        and owned == len(group.owner) - group.owner.count(NOBODY)
        and given == len(group.target) - group.target.count(NOBODY)
    )


def _find_epoch_out_of_order(
    group: ConsumerGroup,
    new_epoch: int | None,
    new_target_epoch: int | None,
    current: _Current,
    *,
    was_sound: bool,
) -> Violation | None:
    epoch = group.group_epoch if new_epoch is None else new_epoch
    target_epoch = group.target_epoch if new_target_epoch is None else new_target_epoch
    if epoch < group.group_epoch or target_epoch < group.target_epoch:
        detail = (
            f"group epoch {group.group_epoch} becomes {epoch}, "
            f"assignment epoch {group.target_epoch} becomes {target_epoch}"
        )
        return Violation(EPOCH_ORDER, detail)
    if target_epoch > epoch and was_sound:
        return Violation(EPOCH_ORDER, f"assignment epoch {target_epoch} > group epoch {epoch}")
    for member_id, said in current.items():
        before = group.entries.get(member_id)
        at = JOIN_EPOCH if before is None else before.member_epoch
        if at > group.target_epoch and not was_sound:
            continue
        if said.member_epoch > target_epoch:
            detail = f"{member_id} at {said.member_epoch} > assignment epoch {target_epoch}"
            return Violation(EPOCH_ORDER, detail)
        # At 0 an incarnation begins; below, it is over.
        if JOIN_EPOCH < said.member_epoch < at:
            detail = f"{member_id} goes back from epoch {at} to {said.member_epoch}"
            return Violation(EPOCH_ORDER, detail)
    return None


def _find_second(
    group: ConsumerGroup,
    invariant: str,
    claims: _Current | _Targets,
    gone: Iterable[MemberId],
    *,
    was_sound: bool,
) -> Violation | None:
    """A partition that two members have afterwards. Those of ``claims`` have what it says alone."""
    is_owner = invariant == ONE_OWNER
    slots = group.owner if is_owner else group.target
    entries, numbers = group.entries, group.numbers
    free = {NOBODY}
    for member_id in gone:
        if member_id in entries:
            free.add(entries[member_id].slot)
    claimed: list[int] = []
    fresh: dict[TopicId, list[int]] = {}
    are_numbered = True
    for member_id, said in claims.items():
        member = entries.get(member_id)
        if member is not None:
            free.add(member.slot)
            if is_owner and was_sound and not _owns_what_it_has(member, slots):
                detail = f"something that {member_id} has is noted as another's"
                return Violation(invariant, detail)
        for topic in _list_parts(said):
            partitions = topic.partitions
            ranges = numbers.ranges(topic.topic_id)
            if not ranges:
                # Nobody has any of a topic without numbers.
                fresh.setdefault(topic.topic_id, []).extend(partitions)
            elif len(ranges) != 1 or not partitions or max(partitions) >= ranges[0].size:
                are_numbered = False
            elif ranges[0].base:
                base = ranges[0].base
                claimed += [base + each for each in partitions]
            else:
                claimed += partitions
    if (
        are_numbered
        and (len(claims) == 1 or _are_distinct(claimed, *fresh.values()))
        and free.issuperset(map(slots.__getitem__, claimed))
    ):
        return None
    return _find_second_one_by_one(group, invariant, claims, free, was_sound=was_sound)


def _are_distinct(*numbers: list[int]) -> bool:
    return all(len(set(each)) == len(each) for each in numbers)


def _owns_what_it_has(member: Member, owner: Sequence[int]) -> bool:
    slot = member.slot
    for number in member.assigned:
        if owner[number] != slot:
            return False
    if not member.pending_revocation:
        return True
    return all(owner[number] == slot for number in member.pending_revocation)


def _list_parts(
    said: ConsumerGroupCurrentMemberAssignmentValue | ConsumerGroupTargetAssignmentMemberValue,
) -> _Parts:
    if type(said) is ConsumerGroupTargetAssignmentMemberValue:
        return said.topic_partitions
    assert isinstance(said, ConsumerGroupCurrentMemberAssignmentValue)
    if not said.partitions_pending_revocation:
        return said.assigned_partitions
    return said.assigned_partitions + said.partitions_pending_revocation


def _find_second_one_by_one(
    group: ConsumerGroup,
    invariant: str,
    claims: _Current | _Targets,
    free: set[int],
    *,
    was_sound: bool,
) -> Violation | None:
    """``_find_second``, also where topics have grown or have no numbers yet."""
    slots = group.owner if invariant == ONE_OWNER else group.target
    numbers = group.numbers
    seen: dict[tuple[TopicId, int], MemberId] = {}
    for member_id, said in claims.items():
        for topic in _list_parts(said):
            topic_id = topic.topic_id
            known = numbers.partitions(topic_id)
            there = [each for each in topic.partitions if each < known]
            for number in numbers.numbers_of(topic_id, there) if there else ():
                if slots[number] not in free and (
                    was_sound or not _has_already(group, invariant, member_id, number)
                ):
                    return _describe_second(group, invariant, slots[number], number, member_id)
            for partition in topic.partitions if len(claims) > 1 else ():
                other = seen.setdefault((topic_id, partition), member_id)
                if other != member_id:
                    detail = f"partition {partition} of topic {topic_id.hex()} goes to two members"
                    return Violation(invariant, f"{detail}, {other} and {member_id}")
    return None


def _has_already(group: ConsumerGroup, invariant: str, member_id: MemberId, number: int) -> bool:
    """Whether the member has it before: then it is not these records that give it."""
    member = group.entries.get(member_id)
    return member is not None and number in _list_had(member, invariant)


def _list_had(member: Member, invariant: str) -> array[int]:
    if invariant == ONE_TARGET:
        return member.target or NO_NUMBERS
    if not member.pending_revocation:
        return member.assigned
    return member.assigned + member.pending_revocation


def _describe_second(
    group: ConsumerGroup, invariant: str, slot: int, number: int, member_id: MemberId
) -> Violation:
    holder = group.slots[slot]
    (topic,) = group.numbers.topic_partitions([number])
    return Violation(
        invariant,
        f"partition {topic.partitions[0]} of topic {topic.topic_id.hex()} is of "
        f"{holder.member_id if holder is not None else 'nobody'} and of {member_id}",
    )


def _find_second_of_instance(group: ConsumerGroup, metadata: _Metadata) -> Violation | None:
    found: dict[str, MemberId] = {}
    for member_id, said in metadata.items():
        if said is None or said.instance_id is None:
            continue
        other = found.setdefault(said.instance_id, member_id)
        old = group.entries.get(member_id)
        was_its_own = (
            old is not None
            and old.metadata is not None
            and old.metadata.instance_id == said.instance_id
        )
        if other == member_id and not was_its_own:
            before = group.static_members.get(said.instance_id, member_id)
            other = member_id if before in metadata else before
        if other != member_id:
            detail = f"instance {said.instance_id} is of {other} and of {member_id}"
            return Violation(ONE_MEMBER_PER_INSTANCE, detail)
    return None
