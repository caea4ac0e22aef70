"""The list of groups, as it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.v1 import admin_pb2


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group."""

    group_id: str
    group_type: str
    state: str
    members: int
    epoch: int


@dataclass(frozen=True, slots=True)
class GroupsView:
    """A page of the groups."""

    rows: Sequence[GroupRow]


def compute_groups_view(answer: admin_pb2.ListGroupsResponse) -> GroupsView:
    """What is shown of an answer."""
    return GroupsView([_compute_row(group) for group in answer.groups])


def _compute_row(group: admin_pb2.GroupSummary) -> GroupRow:
    return GroupRow(
        group.group_id,
        admin_pb2.GroupType.Name(group.group_type).removeprefix("GROUP_TYPE_").lower(),
        admin_pb2.GroupState.Name(group.state).removeprefix("GROUP_STATE_").lower(),
        group.members,
        group.group_epoch,
    )
