"""The order in which members are numbered, which does not depend on when they joined."""

from __future__ import annotations


def compute_member_rank(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    """A sort key of members: those with an instance id first, by that, then others by member id.

    A static member so keeps its number when it returns with a new member id. Source:
    org.apache.kafka.coordinator.group.assignor.RangeAssignor of Kafka 4.3.
    """
    return (True, member_id) if instance_id is None else (False, instance_id)
