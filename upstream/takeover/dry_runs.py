"""What would be in the way of a take or a release, found without doing anything."""

from __future__ import annotations

from coordinator.runtime.api import Coordinator
from model.caller import INTERNAL
from model.commands.groups import ConsumerGroupDescribe
from model.errors import ErrorCode, GroupError
from model.ids import GroupId
from model.responses.groups import ConsumerGroupDescribeResponse
from upstream.cluster.cluster import ClusterUnreachable
from upstream.takeover.asking.cluster_group import ClusterGroup
from upstream.takeover.machine.group_view import Stranger, compute_strangers
from upstream.takeover.machine.move import Move
from upstream.takeover.machine.takeover_steps import Step
from upstream.takeover.machine.taking_signs import compute_obstacle
from upstream.takeover.moving import Moving
from upstream.takeover.takeover_reports import TakeoverReport, make_report


async def try_to_take(moving: Moving, group_id: GroupId) -> TakeoverReport:
    """Whether the group could be taken, and who is in the way."""
    try:
        view = await ClusterGroup(moving.cluster, group_id).describe()
    except ClusterUnreachable as cause:
        return make_report(Move(group_id=group_id, error=f"the cluster did not answer: {cause}"))
    error = compute_obstacle(Move(group_id=group_id), view, moving.rules)
    strangers: tuple[Stranger, ...] = ()
    if not error:
        strangers = compute_strangers(view.others, moving.relays.members_of(group_id).keys())
        error = f"{len(strangers)} members reach the cluster directly" if strangers else ""
    return make_report(Move(group_id=group_id, strangers=strangers, error=error))


async def find_obstacle_to_return(coordinator: Coordinator, move: Move) -> str:
    """What is in the way of giving the group back, in a line; empty if nothing is."""
    if move.step is not Step.HERE:
        return f"it is on its way: {move.step.value}"
    group_id = GroupId(move.group_id)
    try:
        response = await coordinator.call(ConsumerGroupDescribe(INTERNAL, (group_id,)))
    except GroupError as error:
        return error.message
    assert isinstance(response, ConsumerGroupDescribeResponse)
    group = response.groups[0]
    if group.error is not ErrorCode.NONE or not group.members:
        return ""
    count = sum(member.member_type == 1 for member in group.members)
    return f"{count} members use the consumer protocol, which the cluster lacks"
