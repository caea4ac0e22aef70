"""Assignors of classic groups: the leader runs one of them to assign for all members.

`compute_assignment` takes members and partition counts and returns the partitions of each member;
`compute_assignment_bytes` does so on the serialized subscriptions and assignments.
"""

from __future__ import annotations

from muster.assignors.classic.group import GroupAssignment, Member
from muster.assignors.classic.leader import (
    JoinedMember,
    compute_assignment_bytes,
    encode_member_metadata,
)
from muster.assignors.classic.registry import (
    CLASSIC_ASSIGNORS,
    ClassicAssignor,
    UnknownAssignorError,
    compute_assignment,
    find_assignor,
)

__all__ = [
    "CLASSIC_ASSIGNORS",
    "ClassicAssignor",
    "GroupAssignment",
    "JoinedMember",
    "Member",
    "UnknownAssignorError",
    "compute_assignment",
    "compute_assignment_bytes",
    "encode_member_metadata",
    "find_assignor",
]
