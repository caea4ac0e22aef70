"""Responses to members that use the classic protocol."""

from __future__ import annotations

from model.errors import ErrorCode
from model.ids import InstanceId, MemberId
from model.value import value


@value
class JoinedMember:
    """A member as sent to the leader, with its metadata for the chosen protocol."""

    member_id: MemberId
    instance_id: InstanceId | None
    metadata: bytes


@value
class JoinGroupResponse:
    """The member has joined the generation. ``members`` is empty except for the leader.

    ``leader`` is ``None`` if no member assigns. ``skip_assignment``: the leader gets the members
    but must not compute an assignment (KIP-814).
    """

    member_id: MemberId
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: MemberId | None
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@value
class SyncGroupResponse:
    """The assignment of the member.

    ``awaits_partitions``: the assignment is empty because others still own its partitions. A front
    end may hold this response back and make the member rejoin once they are released.
    """

    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    awaits_partitions: bool = False


@value
class ClassicHeartbeatResponse:
    """The member belongs to its group and has nothing to do.

    A front end may hold this response back for up to ``park_max_ms`` (0: not at all), to report a
    rebalance sooner. ``is_held``: the member's SyncGroup waits for the leader's.
    """

    park_max_ms: int = 0
    is_held: bool = False


@value
class LeaveGroupResponse:
    """One result per member, in the order of the request."""

    errors: tuple[ErrorCode, ...]
