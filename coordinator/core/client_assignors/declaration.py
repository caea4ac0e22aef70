"""Client-side assignors that members declare: validation, changes, and the assignment sent back.

Source: KIP-848, "Client Side Assignor". Declarations are side records, written in the same batch as
the member's records.
"""

from __future__ import annotations

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, NO_NUMBERS, Member
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.client_assignors import (
    CLASSIC_VERSION,
    ClientAssignor,
    ClientAssignorsKey,
    ClientAssignorsValue,
    InstalledMetadataKey,
)
from model.commands.client_assignment import ClientAssignment
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat
from model.errors import InvalidRequest
from model.ids import GroupId
from model.log.records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from model.log.side_records import SideRecord
from model.value import value

ASSIGNORS_MAX = 32
"""The most client-side assignors of one member."""

METADATA_MAX_BYTES = 64 * 1024
"""The most metadata of one member for all its assignors: the computing member gets everybody's."""

VERSION_MAX = (1 << 15) - 1


# --------------------------------------------------------------------------------- declarations


@value
class ClientAssignorChange:
    """The effect of a heartbeat on declarations; ``is_bumped`` if it needs a new group epoch."""

    side: tuple[SideRecord, ...] = ()
    is_bumped: bool = False


NO_CLIENT_ASSIGNOR_CHANGE = ClientAssignorChange()


def compute_client_assignor_change(
    shard: Shard,
    group: ConsumerGroup | None,
    member: Member | None,
    command: ConsumerGroupHeartbeat,
    returns: bool,
) -> ClientAssignorChange:
    """The side records of the member's declaration, and of what a replacement inherits.

    Raises ``InvalidRequest`` (``check_client_assignors``).
    """
    said, is_heard = (
        command.client_assignors,
        group is not None and group.client_assignor_state is not None,
    )
    if said is UNCHANGED:
        if not is_heard or command.member_epoch != JOIN_EPOCH:
            return NO_CLIENT_ASSIGNOR_CHANGE
        said = ()
    known = _assignors_of(group, member)
    if said != known or member is None:
        check_client_assignors(group, member, said)
    group_id, member_id = command.group_id, command.member_id
    side: list[SideRecord] = []
    is_bumped = said != known
    if (is_bumped and not returns) or (returns and said):
        key = ClientAssignorsKey(shard.partition, group_id, member_id)
        side.append(SideRecord(key, ClientAssignorsValue(said) if said else None))
    if (
        returns
        and member is not None
        and group is not None
        and group.client_assignor_state is not None
    ):
        installed = group.client_assignor_state.installed.get(member.member_id)
        if installed is not None:
            new_key = InstalledMetadataKey(shard.partition, group_id, member_id)
            side.append(SideRecord(new_key, installed))
    return (
        ClientAssignorChange(tuple(side), is_bumped)
        if side or is_bumped
        else NO_CLIENT_ASSIGNOR_CHANGE
    )


def _assignors_of(group: ConsumerGroup | None, member: Member | None) -> tuple[ClientAssignor, ...]:
    if group is None or group.client_assignor_state is None or member is None:
        return ()
    return group.client_assignor_state.assignors.get(member.member_id, ())


def check_client_assignors(
    group: ConsumerGroup | None, member: Member | None, assignors: tuple[ClientAssignor, ...]
) -> None:
    """Raise ``InvalidRequest`` for a malformed declaration, or one that the group cannot use.

    The metadata of classic members has version -1: while the group has any, other than one that
    this member replaces, each assignor must support this version.
    """
    if len(assignors) > ASSIGNORS_MAX:
        raise InvalidRequest(
            f"The member has {len(assignors)} client-side assignors; at most {ASSIGNORS_MAX} are "
            "allowed."
        )
    size = sum(len(assignor.metadata) for assignor in assignors)
    if size > METADATA_MAX_BYTES:
        raise InvalidRequest(
            f"The metadata of the client-side assignors takes {size} bytes; at most "
            f"{METADATA_MAX_BYTES} are allowed."
        )
    if len({assignor.name for assignor in assignors}) < len(assignors):
        raise InvalidRequest("A client-side assignor is listed twice.")
    others = 0
    if group is not None:
        is_classic = member is not None and member.classic is not None
        others = group.classic_member_count - is_classic
    for assignor in assignors:
        _check_client_assignor(assignor)
        if others and assignor.minimum_version > CLASSIC_VERSION:
            raise InvalidRequest(
                f"Client-side assignor {assignor.name} supports versions "
                f"{assignor.minimum_version} to {assignor.maximum_version}, but the group has "
                f"classic members, which require version {CLASSIC_VERSION}."
            )


def _check_client_assignor(assignor: ClientAssignor) -> None:
    lowest, highest = assignor.minimum_version, assignor.maximum_version
    if not assignor.name.strip():
        raise InvalidRequest("A client-side assignor has no name.")
    if lowest > highest:
        raise InvalidRequest(
            f"Client-side assignor {assignor.name} has a minimum version ({lowest}) above its "
            f"maximum version ({highest})."
        )
    if lowest < CLASSIC_VERSION or highest > VERSION_MAX:
        raise InvalidRequest(
            f"Client-side assignor {assignor.name} supports versions {lowest} to {highest}; valid "
            f"versions are {CLASSIC_VERSION} to {VERSION_MAX}."
        )
    if not lowest <= assignor.version <= highest:
        raise InvalidRequest(
            f"Client-side assignor {assignor.name} supports versions {lowest} to {highest}, but "
            f"its metadata has version {assignor.version}."
        )


def settle_client_assignor_state(shard: Shard, group_id: GroupId, outcome: Outcome) -> Outcome:
    """Add the tombstones of the side records that the outcome makes obsolete.

    A removed member ends its declaration and its installed metadata; a new target ends all
    installed metadata of the group.
    """
    group = shard.consumer_groups.get(group_id)
    if group is None or group.client_assignor_state is None:
        return outcome
    local, partition = group.client_assignor_state, shard.partition
    written = {record.key for record in outcome.side}
    ended: list[ClientAssignorsKey | InstalledMetadataKey] = []
    for key, said in outcome.records:
        if isinstance(key, ConsumerGroupMemberMetadataKey) and said is None:
            if key.member_id in local.assignors:
                ended.append(ClientAssignorsKey(partition, group_id, key.member_id))
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


# ---------------------------------------------------------------------- what responses carry


def compute_told_assignment(
    group: ConsumerGroup, member: Member, member_epoch: int
) -> ClientAssignment | None:
    """The client-side assignment to send to a member that reached the target it belongs to.

    ``None`` for a member that declares no assignor, or if the target was computed otherwise.
    """
    local = group.client_assignor_state
    if local is None or member.member_id not in local.assignors:
        return None
    installed = local.installed.get(member.member_id)
    if installed is None or not installed.assignment_epoch == group.target_epoch == member_epoch:
        return None
    partitions = group.numbers.topic_partitions(member.target or NO_NUMBERS)
    return ClientAssignment(
        installed.assignor,
        installed.assignment_epoch,
        installed.version,
        installed.metadata,
        partitions,
    )


def compute_user_data(group: ConsumerGroup, member: Member) -> bytes | None:
    """The user data of a classic member's assignment: the metadata from a client-side assignor.

    ``None`` if it does not belong to the current target.
    """
    installed = (
        None
        if group.client_assignor_state is None
        else group.client_assignor_state.installed.get(member.member_id)
    )
    if installed is None or installed.assignment_epoch != group.target_epoch:
        return None
    return installed.metadata or None
