"""Offsets set from outside of a group: validation, and the records.

The runtime passes in the offsets that are in the store. Members hold offsets of their own: a
consumer group makes them look again (``live_reset``), a classic group with members is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from coordinator.core.groups.group_deletion import check_is_there, check_not_being_deleted
from coordinator.core.offsets.live_reset import (
    begin_reset,
    find_owners,
    is_tombstone,
    make_offset_records,
)
from coordinator.core.offsets.offset_commit import check_commit_size
from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicGroupState
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.open_transactions import OffsetPlace
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.resets import DescribeReset, ResetOffsets
from model.errors import (
    InvalidGroupId,
    InvalidRequest,
    NonEmptyGroup,
    ResetRefused,
    UnknownTopicOrPartition,
)
from model.ids import GroupId, MemberId
from model.log.records import Record
from model.now import Now
from model.past.offset_changes import NO_OFFSET
from model.responses.resets import OffsetsReset, ResetProgress

NAMED_MAX: Final = 5
"""The most members that a refusal names."""


def compute_revision(shard: Shard, group_id: GroupId) -> str:
    """Names the group as it is: another text after each rebalance."""
    consumers = shard.consumer_groups.get(group_id)
    if consumers is not None:
        return f"consumer-{consumers.group_epoch}-{consumers.member_count}"
    classic = shard.classic_group(group_id)
    if classic is not None:
        return f"classic-{classic.generation}-{classic.state.value}"
    return "offsets"


def handle_reset_offsets(
    shard: Shard, command: ResetOffsets, found: Mapping[OffsetPlace, int], now: Now
) -> Outcome:
    """Write the offsets, or begin to. ``found`` are the committed ones of these partitions."""
    group_id = command.group_id
    check_reset(shard, command)
    revision = compute_revision(shard, group_id)
    if command.revision is not None and command.revision != revision:
        raise ResetRefused(
            f"The group {group_id} has changed since the preview: look at a new preview."
        )
    consumers = shard.consumer_groups.get(group_id)
    if consumers is not None and consumers.member_count:
        _check_protocols(consumers)
        # Members commit all the time: only rebalances make the preview out of date.
        return begin_reset(shard, consumers, command, now, revision)
    _check_empty(shard, group_id)
    if command.before is not None and command.before != found:
        raise ResetRefused(
            f"Offsets of group {group_id} have changed since the preview: look at a new preview."
        )
    response = OffsetsReset(revision)
    if command.validate_only:
        return Outcome(response=response)
    records = sorted(compute_offset_records(shard, command, now), key=is_tombstone)
    return Outcome(records=tuple(records), response=response)


def check_reset(shard: Shard, command: ResetOffsets) -> None:
    """Raise an error unless the group is one that has offsets, and the partitions exist."""
    group_id = command.group_id
    if not group_id:
        raise InvalidGroupId("The group id is empty.")
    check_not_being_deleted(shard, group_id)
    if not command.creates:
        check_is_there(shard, group_id)
    if group_id in shard.foreign_groups:
        raise ResetRefused(f"Group {group_id} is neither a consumer group nor a classic group.")
    check_commit_size(command.topics)
    for wanted in command.topics:
        topic = None if wanted.name is None else shard.image.by_name.get(wanted.name)
        if topic is not None and wanted.topic_id not in (None, topic.topic_id):
            raise UnknownTopicOrPartition(f"Topic {wanted.name} was made again meanwhile.")
        for partition, offset, _, _ in wanted.offsets.rows():
            if topic is None or not 0 <= partition < topic.partitions:
                raise UnknownTopicOrPartition(f"There is no partition {wanted.name}-{partition}.")
            if offset < 0 and (command.undoes is None or offset != NO_OFFSET):
                raise InvalidRequest(f"{wanted.name}-{partition}: {offset} is not an offset.")


def _check_empty(shard: Shard, group_id: GroupId) -> None:
    """Raise ``NonEmptyGroup``, which says who is in the way, for a classic group with members."""
    classic = shard.classic_group(group_id)
    if classic is not None and classic.state is not ClassicGroupState.EMPTY:
        raise compute_live(group_id, _name_members(classic), len(classic.members))


def _check_protocols(group: ConsumerGroup) -> None:
    """Raise ``NonEmptyGroup`` for a group with classic members.

    An eager client gives up everything for each partition, and an old one might not look where to
    begin.
    """
    if group.classic_member_count:
        members = (describe_member(each) for each in group.members() if each.classic is not None)
        raise compute_live(group.group_id, members, group.classic_member_count)


def describe_member(member: Member) -> tuple[MemberId, str, str]:
    """Id, client id and host."""
    said = member.metadata
    if said is None:
        return member.member_id, "", ""
    return member.member_id, said.client_id, said.client_host


def handle_describe_reset(shard: Shard, command: DescribeReset) -> Outcome:
    """How far the last reset of a group with members is, and whom it waits for."""
    check_is_there(shard, command.group_id)
    reset = shard.resets.get(command.group_id)
    group = shard.consumer_groups.get(command.group_id)
    if reset is None:
        return Outcome(response=ResetProgress())
    owners = () if group is None or reset.is_set else find_owners(group, reset)
    by_id = {member.member_id: member for member in owners}
    named = tuple(describe_member(member) for member in islice(by_id.values(), NAMED_MAX))
    return Outcome(response=ResetProgress(reset.value.group_epoch, reset.is_set, named))


def _name_members(group: ClassicGroup) -> Iterable[tuple[str, str, str]]:
    return (
        (member.member_id, member.client_id, member.client_host)
        for member in group.members.values()
    )


def compute_live(
    group_id: GroupId, members: Iterable[tuple[str, str, str]], count: int
) -> NonEmptyGroup:
    """The refusal of a group with members, of which some are named: id, client id and host."""
    named = [
        f"{member_id} ({client_id or '-'} on {host or '-'})"
        for member_id, client_id, host in islice(members, NAMED_MAX)
    ]
    more = f" and {count - len(named)} more" if count > len(named) else ""
    return NonEmptyGroup(
        f"The group {group_id} has {count} classic members, which hold offsets of their own: "
        f"{', '.join(named) or 'they are joining'}{more}. Stop them first, "
        "or move the group to the consumer protocol (muster migrate plan)."
    )


def compute_offset_records(shard: Shard, command: ResetOffsets, now: Now) -> Iterable[Record]:
    """The records of the offsets."""
    for wanted in command.topics:
        assert wanted.name is not None, "a reset names its topics"
        topic_id = shard.image.by_name[wanted.name].topic_id
        rows = tuple(wanted.offsets.rows())
        yield from make_offset_records(command.group_id, wanted.name, topic_id, rows, now)
