"""Replay of the records of unsupported group types: share groups and streams groups.

As in ``coordinator.core.replay.group_records``, records may come in any order and compaction of a
log. Target assignments and share-group state are not kept in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from coordinator.core.state.foreign_groups import (
    NO_EPOCH,
    NO_STATE,
    ForeignGroup,
    ForeignMember,
    ShareGroup,
    StreamsGroup,
)
from coordinator.core.state.shard import Shard
from model.ids import GroupId, MemberId
from model.log import share_records as share
from model.log import streams_records as streams

G = TypeVar("G", ShareGroup, StreamsGroup)


def _group(shard: Shard, group_id: GroupId, kind: type[G], create: bool) -> G | None:
    group = shard.foreign_groups.get(group_id)
    if isinstance(group, kind):
        return group
    if not create:
        return None
    made = shard.state.foreign_groups[group_id] = kind(group_id)
    return made


def _drop(shard: Shard, group_id: GroupId, kind: type[ForeignGroup]) -> None:
    if isinstance(shard.foreign_groups.get(group_id), kind):
        del shard.state.foreign_groups[group_id]


def _replay_metadata(group: ForeignGroup | None, member_id: MemberId, *, is_there: bool) -> None:
    """Apply member metadata; a tombstone removes the member and its other state."""
    if group is None:
        return
    if is_there:
        group.members.setdefault(member_id, ForeignMember()).has_metadata = True
    else:
        group.members.pop(member_id, None)


def _replay_current(
    group: ForeignGroup | None,
    member_id: MemberId,
    value: (
        share.ShareGroupCurrentMemberAssignmentValue
        | streams.StreamsGroupCurrentMemberAssignmentValue
        | None
    ),
) -> None:
    if group is None:
        return
    if value is not None:
        member = group.members.setdefault(member_id, ForeignMember())
        member.member_epoch, member.state = value.member_epoch, value.state
        return
    known = group.members.get(member_id)
    if known is None:
        return
    known.member_epoch, known.state = None, NO_STATE
    if not known.has_metadata:
        del group.members[member_id]


# --------------------------------------------------------------------------------- share groups


def replay_share_member_metadata(
    shard: Shard,
    key: share.ShareGroupMemberMetadataKey,
    value: share.ShareGroupMemberMetadataValue | None,
) -> None:
    """Replay type 10: member metadata of a share group."""
    group = _group(shard, key.group_id, ShareGroup, value is not None)
    _replay_metadata(group, key.member_id, is_there=value is not None)


def replay_share_group(
    shard: Shard, key: share.ShareGroupMetadataKey, value: share.ShareGroupMetadataValue | None
) -> None:
    """Replay type 11: the epoch of a share group. A tombstone removes the group."""
    if value is None:
        _drop(shard, key.group_id, ShareGroup)
        return
    group = _group(shard, key.group_id, ShareGroup, True)
    assert group is not None
    group.group_epoch = value.epoch


def replay_share_target_metadata(
    shard: Shard,
    key: share.ShareGroupTargetAssignmentMetadataKey,
    value: share.ShareGroupTargetAssignmentMetadataValue | None,
) -> None:
    """Replay type 12: the assignment epoch of a share group."""
    group = _group(shard, key.group_id, ShareGroup, value is not None)
    if group is not None:
        group.target_epoch = NO_EPOCH if value is None else value.assignment_epoch


def replay_share_current(
    shard: Shard,
    key: share.ShareGroupCurrentMemberAssignmentKey,
    value: share.ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    """Replay type 14: the current assignment of a share-group member."""
    group = _group(shard, key.group_id, ShareGroup, value is not None)
    _replay_current(group, key.member_id, value)


# ------------------------------------------------------------------------------- streams groups


def replay_streams_group(
    shard: Shard,
    key: streams.StreamsGroupMetadataKey,
    value: streams.StreamsGroupMetadataValue | None,
) -> None:
    """Replay type 17: the epochs of a streams group. A tombstone removes the group."""
    if value is None:
        _drop(shard, key.group_id, StreamsGroup)
        return
    group = _group(shard, key.group_id, StreamsGroup, True)
    assert group is not None
    group.group_epoch = value.epoch
    group.validated_topology_epoch = value.validated_topology_epoch


def replay_streams_member_metadata(
    shard: Shard,
    key: streams.StreamsGroupMemberMetadataKey,
    value: streams.StreamsGroupMemberMetadataValue | None,
) -> None:
    """Replay type 19: member metadata of a streams group."""
    group = _group(shard, key.group_id, StreamsGroup, value is not None)
    _replay_metadata(group, key.member_id, is_there=value is not None)


def replay_streams_target_metadata(
    shard: Shard,
    key: streams.StreamsGroupTargetAssignmentMetadataKey,
    value: streams.StreamsGroupTargetAssignmentMetadataValue | None,
) -> None:
    """Replay type 20: the assignment epoch of a streams group."""
    group = _group(shard, key.group_id, StreamsGroup, value is not None)
    if group is not None:
        group.target_epoch = NO_EPOCH if value is None else value.assignment_epoch


def replay_streams_current(
    shard: Shard,
    key: streams.StreamsGroupCurrentMemberAssignmentKey,
    value: streams.StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    """Replay type 22: the current assignment of a streams-group member."""
    group = _group(shard, key.group_id, StreamsGroup, value is not None)
    _replay_current(group, key.member_id, value)


def replay_streams_topology(
    shard: Shard,
    key: streams.StreamsGroupTopologyKey,
    value: streams.StreamsGroupTopologyValue | None,
) -> None:
    """Replay type 23: the topology epoch of a streams group."""
    group = _group(shard, key.group_id, StreamsGroup, value is not None)
    if group is not None:
        group.topology_epoch = None if value is None else value.epoch


def _replay_nothing(shard: Shard, key: Any, value: Any) -> None:
    """Ignore records that do not affect the state of the group."""


FOREIGN_REPLAYS: dict[type, Callable[[Shard, Any, Any], None]] = {
    share.ShareGroupMemberMetadataKey: replay_share_member_metadata,
    share.ShareGroupMetadataKey: replay_share_group,
    share.ShareGroupTargetAssignmentMetadataKey: replay_share_target_metadata,
    share.ShareGroupTargetAssignmentMemberKey: _replay_nothing,
    share.ShareGroupCurrentMemberAssignmentKey: replay_share_current,
    share.ShareGroupStatePartitionMetadataKey: _replay_nothing,
    streams.StreamsGroupMetadataKey: replay_streams_group,
    streams.StreamsGroupMemberMetadataKey: replay_streams_member_metadata,
    streams.StreamsGroupTargetAssignmentMetadataKey: replay_streams_target_metadata,
    streams.StreamsGroupTargetAssignmentMemberKey: _replay_nothing,
    streams.StreamsGroupCurrentMemberAssignmentKey: replay_streams_current,
    streams.StreamsGroupTopologyKey: replay_streams_topology,
}
