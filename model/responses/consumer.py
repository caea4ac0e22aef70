"""Responses to members of consumer groups."""

from __future__ import annotations

from model.commands.client_assignment import ClientAssignment
from model.ids import MemberId
from model.log.records import TopicPartitions
from model.value import value


@value
class ConsumerGroupHeartbeatResponse:
    """``assignment`` is ``None`` if it has not changed since the member's last request.

    ``has_changes``: this response has a new epoch or assignment, so a front end sends it at once.
    ``parkable``: the member is STABLE or UNRELEASED_PARTITIONS, so a heartbeat without a change may
    be held back until there is one. ``settled``: the member is STABLE at its target and need not
    return before its interval. ``local`` is set if the member's target comes from its client-side
    assignor. ``tokens`` are the fencing tokens of ``assignment``, topic by topic in its order.
    """

    member_id: MemberId
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: tuple[TopicPartitions, ...] | None
    has_changes: bool
    parkable: bool
    settled: bool
    client_assignment: ClientAssignment | None = None
    tokens: tuple[tuple[int, ...], ...] = ()


@value
class ConsumerGroupLeaveResponse:
    member_id: MemberId
    member_epoch: int
