"""Why a classic group rebalances."""

from __future__ import annotations

from typing import Final

from coordinator.core.state.classic.classic_group import ClassicMember
from coordinator.core.state.classic.classic_states import ClassicEvent
from coordinator.core.state.epoch_causes import cut_reason
from model.commands.classic import JoinGroup
from model.ids import MemberId
from model.past.causes import Cause, CauseKind

_KINDS: Final = {
    ClassicEvent.JOIN: CauseKind.SUBSCRIPTION_CHANGED,
    ClassicEvent.LEADER_REJOIN: CauseKind.LEADER_REJOINED,
    ClassicEvent.REPLACE_OTHERWISE: CauseKind.SUBSCRIPTION_CHANGED,
}


def compute_classic_cause(
    kind: CauseKind, member_id: MemberId, member: ClassicMember | None, reason: str | None = None
) -> Cause:
    """The cause that a member is; ``None`` if it was only given a member id."""
    if member is None:
        return Cause(kind, member_id, reason=cut_reason(reason))
    client = member.client_id, member.client_host, member.instance_id
    return Cause(kind, member_id, *client, cut_reason(reason))


def compute_join_cause(command: JoinGroup, member_id: MemberId) -> Cause:
    """The cause that a new member is."""
    caller, reason = command.caller, cut_reason(command.reason)
    client = caller.client_id, caller.client_host, command.instance_id
    return Cause(CauseKind.MEMBER_JOINED, member_id, *client, reason)


def compute_rejoin_cause(event: ClassicEvent, member: ClassicMember, reason: str | None) -> Cause:
    """The cause that a known member is."""
    kind = _KINDS.get(event, CauseKind.MEMBER_JOINED)
    return compute_classic_cause(kind, member.member_id, member, reason)
