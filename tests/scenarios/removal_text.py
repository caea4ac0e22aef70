"""Removal of members by an administrator in scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from model.commands.consumer import LeavingMember
from model.commands.groups import RemoveMembers
from model.ids import GroupId
from model.responses.groups import DescribedMember, MembersRemoved, NamedTopicPartitions
from tests.support.virtual.server import CALLER

Format = Callable[[Iterable[NamedTopicPartitions]], str]


def make_removal(
    words: Sequence[str], members: Iterable[LeavingMember], said: Mapping[str, str]
) -> RemoveMembers:
    """``remove-members g a /i revision=consumer-2-1 validate-only``."""
    return RemoveMembers(
        CALLER,
        GroupId(words[0]),
        tuple(members),
        said.get("reason", ""),
        said.get("revision"),
        "validate-only" in words,
    )


def format_removal(answer: MembersRemoved, format_partitions: Format) -> list[str]:
    """A line for the group, and one for each member that was removed."""
    lines = [f"{answer.revision}: removed, {answer.remaining} left"]
    for member in answer.of_any_protocol:
        if isinstance(member, DescribedMember):
            lines.append(f"  {member.member_id}: had {format_partitions(member.assignment)}")
        else:
            lines.append(f"  {member.member_id}: had {member.assignment.decode()!r}")
    return lines
