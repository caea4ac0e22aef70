"""How many partitions move from one generation of a classic group to the next."""

from __future__ import annotations

from typing import Final

from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.classic.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_assigned_partitions,
)
from model.ids import MemberId

BYTES_MAX: Final = 200_000
"""The assignments of larger groups are not read: each partition takes 4 bytes, and some 200 ns."""
MEMBERS_MAX: Final = 500
"""Nor are those of more members that got something else: each takes some 5 µs."""


def compute_generation_moves(before: ClassicGroup | None, after: ClassicGroup) -> int | None:
    """Partitions that have another owner, or none, after the leader has assigned.

    ``before`` is the group at its last assignments, ``None`` if it is new. ``None`` if the members
    do not use the protocol of consumers, or what they use cannot be read.
    """
    if after.protocol_type != PROTOCOL_TYPE:
        return None
    old = {} if before is None else _find_assignments(before)
    new = _find_assignments(after)
    # What a member keeps whole moves nowhere, and need not be read.
    kept = {member_id for member_id, given in new.items() if old.get(member_id) == given}
    old_owners = _find_owners(old, kept)
    new_owners = _find_owners(new, kept)
    if old_owners is None or new_owners is None:
        return None
    arrived = sum(old_owners.get(place) != owner for place, owner in new_owners.items())
    return arrived + sum(place not in new_owners for place in old_owners)


def _find_assignments(group: ClassicGroup) -> dict[MemberId, bytes]:
    return {member_id: member.assignment for member_id, member in group.members.items()}


def _find_owners(
    given: dict[MemberId, bytes], kept: set[MemberId]
) -> dict[tuple[str, int], MemberId] | None:
    """The owner of each partition; ``None`` if the assignments cannot be read, or are too many."""
    changed = {
        member_id: assignment
        for member_id, assignment in given.items()
        if assignment and member_id not in kept
    }
    if len(changed) > MEMBERS_MAX or sum(map(len, changed.values())) > BYTES_MAX:
        return None
    owners: dict[tuple[str, int], MemberId] = {}
    for member_id, assignment in changed.items():
        topics = decode_assigned_partitions(assignment)
        if topics is None:
            return None
        for topic in topics:
            owners.update(((topic.topic, number), member_id) for number in topic.partitions)
    return owners
