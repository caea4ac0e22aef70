"""Commands of classic groups and of members that speak the classic protocol."""

from __future__ import annotations

from enum import Enum
from typing import Final

from model.caller import Caller
from model.errors import ErrorCode
from model.ids import GroupId, InstanceId, MemberId
from model.value import value

PROTOCOLS_MAX: Final = 1_000
"""More than any client has: whoever joins, each protocol of each member is looked at."""


@value
class JoinProtocol:
    """A protocol that a member can follow, with what it says for it; opaque to the coordinator."""

    name: str
    metadata: bytes


@value
class JoinGroup:
    """A member joins a classic group, or joins again with what it says now (JoinGroup, KIP-345).

    ``member_id`` is ``None`` where the client has none yet; ``new_member_id`` is fresh, made by the
    shell, and is used then. ``protocols`` are in the order of the client's preference.
    ``requires_member_id``: a new dynamic member is given its id first and has to come again with it
    (KIP-394, from version 4). ``may_skip_assignment``: a static leader that comes back can be told
    to assign nothing (KIP-814, version 9). The answer may come much later: when all have joined.
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
    """What the leader assigns to a member; opaque to the coordinator."""

    member_id: MemberId
    assignment: bytes


@value
class AssignmentFailure:
    """The leader could not assign: the error that all who wait for an assignment get."""

    error: ErrorCode
    message: str


@value
class SyncGroup:
    """A member asks for its assignment; the leader brings those of all (SyncGroup).

    ``protocol_type`` and ``protocol_name`` are checked where they are given (from version 5).
    ``failure`` is the leader's, which Kafka's wire cannot say. The answer of a follower comes when
    the leader's assignment is durable.
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
    """A member of a classic group is alive (Heartbeat).

    ``by_server``: the server asks itself, for a member whose request it holds back; this is no
    sign that it is alive.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    generation: int
    instance_id: InstanceId | None = None
    by_server: bool = False


class ClassicDeadline(Enum):
    """Which deadline of a classic group or of one of its members."""

    SESSION = "session timeout"
    JOIN = "join phase"
    SYNC = "sync phase"
    SIZE = "members above the group's size"
    """Passes at once: the group was loaded with more members than it may have by now."""


@value
class ExpireClassicDeadline:
    """A deadline passed: the session of a member, or a phase of the rebalance.

    The runtime sends it; the core checks that it still holds. ``member_id`` is empty where the
    deadline is the group's.
    """

    caller: Caller
    group_id: GroupId
    deadline: ClassicDeadline
    member_id: MemberId
