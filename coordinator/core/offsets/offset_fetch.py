"""OffsetFetch: validation, and the response for one stored offset."""

from __future__ import annotations

from coordinator.core.offsets.offset_commit import NO_EPOCH, check_foreign_member, compute_stale
from coordinator.core.state.foreign_groups import ShareGroup
from coordinator.core.state.shard import Shard
from model.commands.offsets import OffsetFetch
from model.errors import (
    StaleMemberEpoch,
    UnknownMemberId,
)
from model.ids import ZERO_TOPIC_ID, TopicId
from model.log.records import LegacyOffsetCommitValue, OffsetCommitValue
from model.responses.offsets import FetchedOffset


def check_offset_fetch(shard: Shard, command: OffsetFetch) -> bool:
    """Return whether the group may have offsets.

    Raises an error if the request names a member or an epoch that is not current (row O11 of
    tests/scenarios/README.md).
    """
    group = shard.consumer_groups.get(command.group_id)
    if group is None:
        return _may_fetch_without_group(shard, command)
    if command.member_id is None and (command.member_epoch is None or command.member_epoch < 0):
        return True
    member = None if command.member_id is None else group.member(command.member_id)
    if member is None:
        raise UnknownMemberId(
            f"Member {command.member_id} is not a member of group {command.group_id}."
        )
    epoch = NO_EPOCH if command.member_epoch is None else command.member_epoch
    if epoch != member.member_epoch:
        raise compute_stale(
            member,
            f"The received member epoch {epoch} does not match the expected member epoch "
            f"{member.member_epoch}.",
        )
    return True


def _may_fetch_without_group(shard: Shard, command: OffsetFetch) -> bool:
    foreign = shard.foreign_groups.get(command.group_id)
    if isinstance(foreign, ShareGroup):
        return False
    epoch = NO_EPOCH if command.member_epoch is None else command.member_epoch
    by_member = command.member_id is not None or epoch >= 0
    if foreign is not None and by_member:
        member = check_foreign_member(foreign, command.member_id)
        if epoch != member.member_epoch:
            raise StaleMemberEpoch(
                f"The received member epoch {epoch} does not match the expected "
                f"member epoch {member.member_epoch}."
            )
    return (
        command.group_id in shard.offset_groups or shard.classic_group(command.group_id) is not None
    )


def compute_fetched_offset(
    partition: int,
    value: OffsetCommitValue | LegacyOffsetCommitValue | None,
    topic_id: TopicId,
) -> FetchedOffset:
    """The response for a stored offset; -1 if there is none, or it belongs to another topic.

    ``topic_id`` is the requested topic id, or zero if the request has a name.
    """
    if value is None:
        return FetchedOffset(partition, -1, None, "")
    if isinstance(value, LegacyOffsetCommitValue):
        return FetchedOffset(partition, value.offset, None, value.metadata)
    if topic_id not in (ZERO_TOPIC_ID, value.topic_id) and value.topic_id != ZERO_TOPIC_ID:
        return FetchedOffset(partition, -1, None, "")
    leader_epoch = None if value.leader_epoch < 0 else value.leader_epoch
    return FetchedOffset(partition, value.offset, leader_epoch, value.metadata)
