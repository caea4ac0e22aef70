"""Client-side assignors that members name: which are refused, what a change comes to, who is told.

Source: KIP-848, "Client Side Assignor". What members name is in side records, in the batch of the
records beside them.
"""

from __future__ import annotations

from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.consumer_member import JOIN_EPOCH, NO_NUMBERS, Member
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands import UNCHANGED, ConsumerGroupHeartbeat
from model.errors import InvalidRequest
from model.ids import GroupId
from model.local_assignors import (
    CLASSIC_VERSION,
    InstalledMetadataKey,
    LocalAssignor,
    LocalAssignorsKey,
    LocalAssignorsValue,
)
from model.local_commands import LocalAssignment
from model.log.records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from model.log.side_records import SideRecord
from model.value import value

ASSIGNORS_MAX = 32
"""So many may a member name."""

METADATA_MAX_BYTES = 64 * 1024
"""So much may it say for all of them: whoever computes is told what every member says."""

VERSION_MAX = (1 << 15) - 1


# --------------------------------------------------------------------------- what members name


@value
class LocalChange:
    """What a heartbeat changes: ``is_bumped`` where a new assignment is to be computed."""

    side: tuple[SideRecord, ...] = ()
    is_bumped: bool = False


NO_LOCAL_CHANGE = LocalChange()


def compute_local_change(
    shard: Shard,
    group: ConsumerGroup | None,
    member: Member | None,
    command: ConsumerGroupHeartbeat,
    returns: bool,
) -> LocalChange:
    """What the member names from now on, and what goes over from the one whose place it takes.

    Raises INVALID_REQUEST.
    """
    said, is_heard = command.local_assignors, group is not None and group.local is not None
    if said is UNCHANGED:
        if not is_heard or command.member_epoch != JOIN_EPOCH:
            return NO_LOCAL_CHANGE
        said = ()
    known = _assignors_of(group, member)
    if said != known or member is None:
        check_local_assignors(group, member, said)
    group_id, member_id = command.group_id, command.member_id
    side: list[SideRecord] = []
    is_bumped = said != known
    if (is_bumped and not returns) or (returns and said):
        key = LocalAssignorsKey(shard.partition, group_id, member_id)
        side.append(SideRecord(key, LocalAssignorsValue(said) if said else None))
    if returns and member is not None and group is not None and group.local is not None:
        installed = group.local.installed.get(member.member_id)
        if installed is not None:
            new_key = InstalledMetadataKey(shard.partition, group_id, member_id)
            side.append(SideRecord(new_key, installed))
    return LocalChange(tuple(side), is_bumped) if side or is_bumped else NO_LOCAL_CHANGE


def _assignors_of(group: ConsumerGroup | None, member: Member | None) -> tuple[LocalAssignor, ...]:
    if group is None or group.local is None or member is None:
        return ()
    return group.local.assignors.get(member.member_id, ())


def check_local_assignors(
    group: ConsumerGroup | None, member: Member | None, assignors: tuple[LocalAssignor, ...]
) -> None:
    """Raises INVALID_REQUEST for what nobody could be asked to compute with.

    Of classic members all metadata are of version -1: where there are any, and they are not about
    to be replaced by this member, an assignor has to understand that.
    """
    if len(assignors) > ASSIGNORS_MAX:
        raise InvalidRequest(
            f"{len(assignors)} local assignors are named; at most {ASSIGNORS_MAX} are allowed."
        )
    size = sum(len(assignor.metadata) for assignor in assignors)
    if size > METADATA_MAX_BYTES:
        raise InvalidRequest(
            f"The metadata of local assignors have {size} bytes; at most {METADATA_MAX_BYTES} are "
            "allowed."
        )
    if len({assignor.name for assignor in assignors}) < len(assignors):
        raise InvalidRequest("A local assignor is named twice.")
    others = 0
    if group is not None:
        is_classic = member is not None and member.classic is not None
        others = group.classic_member_count - is_classic
    for assignor in assignors:
        _check_local_assignor(assignor)
        if others and assignor.minimum_version > CLASSIC_VERSION:
            raise InvalidRequest(
                f"Local assignor {assignor.name} supports versions {assignor.minimum_version} to "
                f"{assignor.maximum_version}, and the group has members of the classic protocol: "
                f"version {CLASSIC_VERSION} has to be among them."
            )


def _check_local_assignor(assignor: LocalAssignor) -> None:
    lowest, highest = assignor.minimum_version, assignor.maximum_version
    if not assignor.name.strip():
        raise InvalidRequest("A local assignor has no name.")
    if lowest > highest:
        raise InvalidRequest(
            f"Local assignor {assignor.name} has a minimum version ({lowest}) above its maximum "
            f"version ({highest})."
        )
    if lowest < CLASSIC_VERSION or highest > VERSION_MAX:
        raise InvalidRequest(
            f"Local assignor {assignor.name} supports versions {lowest} to {highest}: they are "
            f"{CLASSIC_VERSION} to {VERSION_MAX}."
        )
    if not lowest <= assignor.version <= highest:
        raise InvalidRequest(
            f"Local assignor {assignor.name} supports versions {lowest} to {highest}, and its "
            f"metadata is of version {assignor.version}."
        )


def settle_local_state(shard: Shard, group_id: GroupId, outcome: Outcome) -> Outcome:
    """The outcome with tombstones for what its records end: members, and targets with metadata."""
    group = shard.consumer_groups.get(group_id)
    if group is None or group.local is None:
        return outcome
    local, partition = group.local, shard.partition
    written = {record.key for record in outcome.side}
    ended: list[LocalAssignorsKey | InstalledMetadataKey] = []
    for key, said in outcome.records:
        if isinstance(key, ConsumerGroupMemberMetadataKey) and said is None:
            if key.member_id in local.assignors:
                ended.append(LocalAssignorsKey(partition, group_id, key.member_id))
            if key.member_id in local.installed:
                ended.append(InstalledMetadataKey(partition, group_id, key.member_id))
        elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey) and isinstance(
            said, ConsumerGroupTargetAssignmentMetadataValue
        ):
            ended += (
                InstalledMetadataKey(partition, group_id, member_id)
                for member_id in local.installed
            )
    tombstones = (SideRecord(key, None) for key in dict.fromkeys(ended) if key not in written)
    return outcome.with_side((*tombstones, *outcome.side))


# --------------------------------------------------------------------------- what members are told


def compute_told_assignment(
    group: ConsumerGroup, member: Member, member_epoch: int
) -> LocalAssignment | None:
    """For a member at the target that an assignor of its own computed, which it is told of."""
    local = group.local
    if local is None or member.member_id not in local.assignors:
        return None
    installed = local.installed.get(member.member_id)
    if installed is None or not installed.assignment_epoch == group.target_epoch == member_epoch:
        return None
    partitions = group.numbers.topic_partitions(member.target or NO_NUMBERS)
    return LocalAssignment(
        installed.assignor,
        installed.assignment_epoch,
        installed.version,
        installed.metadata,
        partitions,
    )


def compute_user_data(group: ConsumerGroup, member: Member) -> bytes | None:
    """What a classic member is given beside its partitions: the bytes that the assignor has for it.

    Only with the target that they go with.
    """
    installed = None if group.local is None else group.local.installed.get(member.member_id)
    if installed is None or installed.assignment_epoch != group.target_epoch:
        return None
    return installed.metadata or None
