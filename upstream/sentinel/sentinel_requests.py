"""The requests of a sentinel, and those that make room for it.

The instance id is in each of them: without it a Muster whose seat another one has could still
commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.codec.client_frames import ClientRequest
from muster.assignors.embedded import PROTOCOL_TYPE, encode_subscription, make_subscription
from upstream.sentinel.sentinel_sign import INSTANCE_ID, PROTOCOL_NAME

JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
CONSUMER_GROUP_DESCRIBE: Final = 69

_NEEDED: Final = {JOIN_GROUP: 5, HEARTBEAT: 3, LEAVE_GROUP: 3, SYNC_GROUP: 3, DESCRIBE_GROUPS: 4}
"""The first versions with instance ids."""
_NAMES: Final = {
    JOIN_GROUP: "JoinGroup",
    HEARTBEAT: "Heartbeat",
    LEAVE_GROUP: "LeaveGroup",
    SYNC_GROUP: "SyncGroup",
    DESCRIBE_GROUPS: "DescribeGroups",
}
EMPTY_SUBSCRIPTION: Final = encode_subscription(make_subscription(()), 0)
_OWN_METADATA: Final = b""
"""No consumer can have it, and no broker reads it; anything else that is malformed wedges a group
in the broker for good."""


def compute_missing_versions(served: Mapping[int, range]) -> str:
    """What a cluster lacks for static members, by name; empty if nothing."""
    missing = [
        f"{_NAMES[key]} v{version}"
        for key, version in _NEEDED.items()
        if not served.get(key) or served[key][-1] < version
    ]
    return ", ".join(missing)


def make_join(
    group_id: str,
    member_id: str,
    protocols: Sequence[str],
    session_timeout_ms: int,
    rebalance_timeout_ms: int,
) -> ClientRequest:
    """JoinGroup: with its own protocol alone, or, beside members, with theirs first.

    Theirs comes with a subscription without topics. Its own is always among them: a member may only
    change to protocols that it has offered before, even if it is alone in the group.
    """
    offered = [{"name": name, "metadata": EMPTY_SUBSCRIPTION} for name in protocols]
    own = [{"name": PROTOCOL_NAME, "metadata": _OWN_METADATA}]
    fields = {
        "group_id": group_id,
        "session_timeout": session_timeout_ms,
        "rebalance_timeout": rebalance_timeout_ms,
        "member_id": member_id,
        "group_instance_id": INSTANCE_ID,
        "protocol_type": PROTOCOL_TYPE,
        "protocols": offered + own,
    }
    return ClientRequest(JOIN_GROUP, fields)


def make_sync(group_id: str, member_id: str, generation: int, assignment: bytes) -> ClientRequest:
    """SyncGroup: all partitions to the sentinel itself."""
    fields = {
        "group_id": group_id,
        "generation_id": generation,
        "member_id": member_id,
        "group_instance_id": INSTANCE_ID,
        "assignments": [{"member_id": member_id, "assignment": assignment}],
    }
    # From version 5 on the protocol has to be named, which differs beside members.
    return ClientRequest(SYNC_GROUP, fields, version_max=4)


def make_heartbeat(group_id: str, member_id: str, generation: int) -> ClientRequest:
    """Heartbeat of the sentinel."""
    return make_member_heartbeat(group_id, member_id, generation, INSTANCE_ID)


def make_member_heartbeat(
    group_id: str, member_id: str, generation: int, instance_id: str | None
) -> ClientRequest:
    """Heartbeat of any member."""
    fields = {
        "group_id": group_id,
        "generation_id": generation,
        "member_id": member_id,
        "group_instance_id": instance_id,
    }
    return ClientRequest(HEARTBEAT, fields)


def make_leave(
    group_id: str, members: Sequence[tuple[str, str | None]], reason: str
) -> ClientRequest:
    """LeaveGroup of members by member id and instance id."""
    rows = [
        {"member_id": member_id, "group_instance_id": instance_id, "reason": reason}
        for member_id, instance_id in members
    ]
    return ClientRequest(LEAVE_GROUP, {"group_id": group_id, "members": rows})


def make_describe(group_ids: Sequence[str]) -> ClientRequest:
    """DescribeGroups; version 6 has another answer for groups that do not exist."""
    return ClientRequest(DESCRIBE_GROUPS, {"groups": list(group_ids)}, version_max=5)


def make_consumer_describe(group_id: str) -> ClientRequest:
    """ConsumerGroupDescribe, of a cluster that has the consumer protocol."""
    return ClientRequest(CONSUMER_GROUP_DESCRIBE, {"group_ids": [group_id]})
