"""A classic group comes from the cluster that Muster stands in front of, or goes back to it.

In either case the members have to hear of it. So the group is PreparingRebalance afterwards, and
heartbeats are answered with REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from typing import Final

from coordinator.core.classic.classic_draft import ClassicDraft
from coordinator.core.classic.classic_rebalance import compute_group_deadlines_at_load, rebalance
from coordinator.core.groups.group_places import compute_place_records, place_of
from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    compute_classic_group,
    compute_group_record,
)
from coordinator.core.state.classic.classic_states import ClassicEvent
from coordinator.core.state.outcome import (
    ArmClassicDeadline,
    NoteRebalance,
    Outcome,
)
from coordinator.core.state.shard import Shard
from model.commands.classic import ClassicDeadline
from model.commands.places import AdoptedMember, AdoptGroup, ReturnGroup
from model.errors import GroupIdNotFound, NonEmptyGroup
from model.ids import GroupId
from model.log.records import (
    ClassicGroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    Record,
)
from model.now import Now
from model.past.causes import Cause, CauseKind
from model.places import Place
from model.responses.response import Done

UNKNOWN_TIMEOUT_MS: Final = 300_000
"""For members whose timeouts nobody knows: Java's default rebalance timeout."""


def handle_adopt_group(shard: Shard, command: AdoptGroup, now: Now) -> Outcome:
    """Write the group as the cluster had it, and its place.

    With a leader it is Stable, as after a coordinator has moved. Without one its members have to
    join again: a coordinator that loads such a record goes on with the rebalance too.
    """
    group_id = command.group_id
    side = compute_place_records(shard, group_id, Place.MUSTER, now, command.generation)
    is_nothing = not command.members and not command.generation
    if is_nothing or _is_here(shard, group_id):
        return Outcome(side=side, response=Done())
    value = GroupMetadataValue(
        command.protocol_type,
        command.generation,
        command.protocol_name if command.members else None,
        command.leader,
        now.wall_ms,
        tuple(map(_compute_member, command.members)),
    )
    record = Record(GroupMetadataKey(group_id), value)
    group = compute_classic_group(group_id, value)
    compute_group_record(group)  # Raises an error for a record that is too large.
    return Outcome(
        records=(record,), side=side, response=Done(), effects=tuple(_compute_effects(group))
    )


def _is_here(shard: Shard, group_id: GroupId) -> bool:
    return (
        group_id in shard.consumer_groups
        or group_id in shard.foreign_groups
        or shard.classic_group(group_id) is not None
    )


def _compute_member(member: AdoptedMember) -> ClassicGroupMember:
    return ClassicGroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms or UNKNOWN_TIMEOUT_MS,
        member.session_timeout_ms or UNKNOWN_TIMEOUT_MS,
        member.metadata,
        member.assignment,
    )


def _compute_effects(group: ClassicGroup) -> list[ArmClassicDeadline | NoteRebalance]:
    if not group.members:
        return []
    session, reason = ClassicDeadline.SESSION, "taken over from the cluster"
    cause = Cause(CauseKind.MIGRATED, reason=reason)
    begun = NoteRebalance(group.group_id, group.generation, reason, cause)
    return [
        *(() if group.leader else (begun,)),
        *compute_group_deadlines_at_load(group),
        *(
            ArmClassicDeadline(group.group_id, session, each.member_id, each.session_timeout_ms)
            for each in group.members.values()
        ),
    ]


def handle_return_group(shard: Shard, command: ReturnGroup, now: Now) -> Outcome:
    """Note that the group returns, and begin a rebalance that its members end in the cluster.

    Sent again, as after a restart, it begins the rebalance that the restart has ended.
    """
    group_id = command.group_id
    if place_of(shard, group_id) not in (Place.MUSTER, Place.RETURNING):
        raise GroupIdNotFound(f"The group {group_id} is not here.")
    consumers = shard.consumer_groups.get(group_id)
    if consumers is not None and consumers.member_count:
        raise NonEmptyGroup(
            f"The group {group_id} uses the consumer protocol: it can return once its members use "
            "the classic protocol, or have left."
        )
    side = compute_place_records(shard, group_id, Place.RETURNING, now)
    group = shard.classic_group(group_id)
    if group is None:
        return Outcome(side=side, response=Done())
    draft = ClassicDraft(group, now)
    settings = shard.settings_of(group_id)
    reason = "the group returns to the cluster"
    cause = Cause(CauseKind.MIGRATED, reason=reason)
    rebalance(draft, settings, ClassicEvent.MOVED, (reason, cause))
    return draft.finish(Done()).with_side(side)
