"""The order in which members are numbered: who they are decides it, not when they came."""

from __future__ import annotations


def compute_member_rank(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    """A key to sort members by: those with an instance id first, by that, then by member id.

    So a static member keeps its number when it comes back with another member id. Source:
    org.apache.kafka.coordinator.group.assignor.RangeAssignor of Kafka 4.3.
    """
    return (True, member_id) if instance_id is None else (False, instance_id)
