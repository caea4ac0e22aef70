"""The command that adopts the members of a group of the cluster."""

from __future__ import annotations

from typing import Final

from model.caller import INTERNAL
from model.commands.places import AdoptedMember, AdoptGroup
from model.ids import GroupId, InstanceId, MemberId
from muster.assignors.embedded import PROTOCOL_TYPE
from upstream.sentinel.sentinel_requests import EMPTY_SUBSCRIPTION
from upstream.takeover.machine.move import Move
from upstream.takeover.machine.takeover_actions import Adopt
from upstream.takeover.machine.takeover_events import MemberTimes

_UNKNOWN_TIMES: Final = MemberTimes(0, 0)


def make_adoption(move: Move, action: Adopt) -> AdoptGroup:
    """Adopts the members, with the timeouts that are known of them.

    What they subscribe to is not known of a group that the cluster was rebalancing: until they
    rejoin it is nothing, which the leader's assignor can read.
    """
    members = tuple(
        AdoptedMember(
            MemberId(member.member_id),
            None if member.instance_id is None else InstanceId(member.instance_id),
            member.client_id,
            member.host,
            times.rebalance_timeout_ms,
            times.session_timeout_ms,
            member.metadata or EMPTY_SUBSCRIPTION,
            member.assignment,
        )
        for member in action.members
        for times in (move.known.get(member.member_id, _UNKNOWN_TIMES),)
    )
    return AdoptGroup(
        INTERNAL,
        GroupId(move.group_id),
        max(action.generation, 0),
        PROTOCOL_TYPE,
        action.protocol or None,
        MemberId(action.leader) if action.leader else None,
        members,
    )
