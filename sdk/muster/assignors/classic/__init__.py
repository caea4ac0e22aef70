"""The assignors that members of classic groups run: one of them, the leader, assigns for all.

`compute_assignment` takes members and partition counts and says who gets what;
`compute_assignment_bytes` takes and gives the bytes that the leader has and sends.
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
