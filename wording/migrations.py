"""The way of a group to the consumer protocol and back, in words."""

from __future__ import annotations

from collections.abc import Sequence

from muster.v1 import admin_pb2, types_pb2

POLICY = "consumer.migration.policy"
ROLLED_BACK = "downgrade"
"""The policy that converts the group to classic when it can, and does not upgrade it again."""


def render_verdict(verdict: int) -> str:
    """``READY``, ``WARN`` or ``BLOCKED``."""
    return admin_pb2.MigrationVerdict.Name(verdict).removeprefix("MIGRATION_VERDICT_")


def render_change(change: admin_pb2.ClientChange) -> str:
    """Render ``group.protocol=consumer``, or that a setting must be removed."""
    return f"{change.name}={change.value}" if change.HasField("value") else f"remove {change.name}"


def find_left(group: admin_pb2.Group, policy: str) -> list[admin_pb2.GroupMember]:
    """The members to replace: those of the consumer protocol during a rollback, else classic."""
    if not is_consumer(group):
        return [] if policy == ROLLED_BACK else list(group.members)
    consumer_members = find_consumer_members(group)
    if policy == ROLLED_BACK:
        return consumer_members
    return [member for member in group.members if member not in consumer_members]


def find_consumer_members(group: admin_pb2.Group) -> list[admin_pb2.GroupMember]:
    """The members that use the consumer protocol."""
    return [
        member for member in group.members if member.protocol == admin_pb2.MEMBER_PROTOCOL_CONSUMER
    ]


def count_moving(member: admin_pb2.GroupMember) -> int:
    """Count the partitions assigned to the member that it does not own yet.

    Partitions to revoke are not counted: each is counted at the member that receives it, if any.
    """
    return len(_compute_places(member.target_assignment) - _compute_places(member.assignment))


def _compute_places(topics: Sequence[types_pb2.TopicPartitions]) -> set[tuple[bytes, int]]:
    return {(topic.topic_id, number) for topic in topics for number in topic.partitions}


def render_protocol(protocol: int) -> str:
    """Render a protocol as ``classic`` or ``consumer``."""
    return admin_pb2.MemberProtocol.Name(protocol).removeprefix("MEMBER_PROTOCOL_").lower()


def is_consumer(group: admin_pb2.Group) -> bool:
    return group.group_type == admin_pb2.GROUP_TYPE_CONSUMER
