"""Commands of classic groups and of members that use the classic protocol."""

from __future__ import annotations

from enum import Enum
from typing import Final

from model.caller import Caller
from model.errors import ErrorCode
from model.ids import GroupId, InstanceId, MemberId
from model.value import value

PROTOCOLS_MAX: Final = 1_000
"""Most protocols in one JoinGroup, more than any client sends: a join scans all of them."""


@value
class JoinProtocol:
    """A protocol that a member supports, with its metadata, opaque to the coordinator."""

    name: str
    metadata: bytes


@value
class JoinGroup:
    """JoinGroup: a member joins or rejoins a classic group.

    ``member_id`` is ``None`` if the client has none yet; the member then gets ``new_member_id``,
    which the runtime generates. ``protocols`` are in the client's order of preference.
    ``requires_member_id``: a new dynamic member gets MEMBER_ID_REQUIRED with its id and must rejoin
    with it (KIP-394, from version 4). ``may_skip_assignment``: the client understands
    ``SkipAssignment`` in the response to a returning static leader (KIP-814, from version 9). The
    response waits until the join phase ends.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId | None
    new_member_id: MemberId
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[JoinProtocol, ...]
    instance_id: InstanceId | None = None
    requires_member_id: bool = True
    may_skip_assignment: bool = True
    reason: str | None = None


@value
class MemberAssignment:
    """The leader's assignment for one member, opaque to the coordinator."""

    member_id: MemberId
    assignment: bytes


@value
class AssignmentFailure:
    """The leader failed to compute an assignment: every waiting member gets this error."""

    error: ErrorCode
    message: str


@value
class SyncGroup:
    """SyncGroup: a member fetches its assignment; the leader supplies those of all members.

    ``protocol_type`` and ``protocol_name`` are checked if present (from version 5). ``failure``
    reports that the leader could not assign; only gRPC clients can send it. A follower's response
    waits until the leader's assignment is durable.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    generation: int
    assignments: tuple[MemberAssignment, ...] = ()
    instance_id: InstanceId | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    failure: AssignmentFailure | None = None


@value
class ClassicHeartbeat:
    """Heartbeat of a classic member.

    ``by_server``: the coordinator repeats a heartbeat that it holds back; it does not extend the
    session.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    generation: int
    instance_id: InstanceId | None = None
    by_server: bool = False


class ClassicDeadline(Enum):
    """The deadlines of a classic group and of its members."""

    SESSION = "session timeout"
    JOIN = "join phase"
    SYNC = "sync phase"
    SIZE = "members above the group's size"
    """Fires at once, for a group that was loaded with more members than ``group.max.size``."""


@value
class ExpireClassicDeadline:
    """A deadline fired: a member's session timeout or the end of a rebalance phase.

    The runtime sends it; the core checks that the deadline still applies. ``member_id`` is empty
    for a deadline of the group.
    """

    caller: Caller
    group_id: GroupId
    deadline: ClassicDeadline
    member_id: MemberId
