"""The tables of `muster group describe`: Kafka's columns in Kafka's order, then Muster's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cli.admin.group.group_renders import is_classic, render_subscription
from cli.admin.group.group_waits import render_waits
from cli.output import Listing
from wording.groups import (
    render_group_state,
    render_member_state,
    render_partitions,
    render_type,
)
from wording.times import render_second

if TYPE_CHECKING:
    from muster.v1 import admin_pb2


DESCRIBED_WIDE: Final = 4
DESCRIBED_COLUMNS: Final = (
    "GROUP",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
    "#PARTITIONS",
    "CURRENT-EPOCH",
    "STATE",
    "CURRENT-ASSIGNMENT",
    "TARGET-ASSIGNMENT",
    "PENDING-REVOCATION",
    "GROUP-INSTANCE-ID",
    "RACK",
    "SUBSCRIPTION",
)


def compute_description(group: admin_pb2.Group) -> Listing:
    """A table of the group's members under a line about the group itself.

    Members of a classic group have no epoch, state or target of their own.
    """
    from cli.messages import as_dict

    rows = [
        [
            group.group_id,
            member.member_id,
            member.client_host,
            member.client_id,
            sum(len(topic.partitions) for topic in member.assignment),
            "-" if is_classic(group) else member.member_epoch,
            "-" if is_classic(group) else render_member_state(member.state),
            render_partitions(member.assignment),
            render_partitions(member.target_assignment),
            render_partitions(member.pending_revocation),
            member.instance_id,
            member.rack_id,
            render_subscription(member),
        ]
        for member in group.members
    ]
    preface = [render_head(group)]
    if not group.members:
        preface.append(f"Group {group.group_id} has no active members.")
    preface += render_waits(group.members)
    content = as_dict(group)
    return Listing(
        "group.describe", DESCRIBED_COLUMNS, rows, content, "members", DESCRIBED_WIDE, preface
    )


def render_head(group: admin_pb2.Group) -> str:
    """A line about the group itself."""
    head = f"{group.group_id}: {render_type(group.group_type)}, {render_group_state(group.state)}, "
    if is_classic(group):
        head += (
            f"generation {group.group_epoch}, protocol type {group.protocol_type or '-'}, "
            f"protocol {group.protocol or '-'}"
        )
    else:
        head += (
            f"group epoch {group.group_epoch}, target assignment epoch {group.assignment_epoch}, "
            f"assignor {group.assignor_name or '-'}"
        )
    if group.frozen_since_ms:
        head += f", FROZEN since {render_second(group.frozen_since_ms)} by {group.frozen_by}"
    return head


def compute_descriptions(groups: Sequence[admin_pb2.Group]) -> Listing:
    """The descriptions of several groups in one table."""
    parts = [compute_description(group) for group in groups]
    rows = [row for part in parts for row in part.rows]
    preface = [line for part in parts for line in part.preface]
    return replace(_list(groups, DESCRIBED_COLUMNS, rows, DESCRIBED_WIDE), preface=preface)


def compute_members(groups: Sequence[admin_pb2.Group], verbose: bool) -> Listing:
    """`--members`, as in Kafka's tool. GROUP-INSTANCE-ID is there if a member has one."""
    columns = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    if verbose:
        columns += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    columns += ["STATE", "PENDING-REVOCATION", "RACK", "SUBSCRIPTION"]
    rows: list[list[object]] = []
    for group in groups:
        for member in group.members:
            row: list[object] = [
                group.group_id,
                member.member_id,
                member.instance_id,
                member.client_host,
                member.client_id,
                sum(len(topic.partitions) for topic in member.assignment),
            ]
            known = not is_classic(group)
            if verbose:
                row += [
                    member.member_epoch if known else None,
                    render_partitions(member.assignment),
                    group.assignment_epoch if known else None,
                    render_partitions(member.target_assignment),
                ]
            row += [
                render_member_state(member.state) if known else None,
                render_partitions(member.pending_revocation),
                member.rack_id,
                render_subscription(member),
            ]
            rows.append(row)
    if not any(member.instance_id for group in groups for member in group.members):
        place = columns.index("GROUP-INSTANCE-ID")
        del columns[place]
        for line in rows:
            del line[place]
    return _list(groups, columns, rows, 4)


def compute_states(groups: Sequence[admin_pb2.Group], server: str, verbose: bool) -> Listing:
    """`--state`, as in Kafka's tool. The coordinator is the server that was asked.

    FROZEN-SINCE is there if a group is frozen.
    """
    columns = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    if verbose:
        columns += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
    is_any_frozen = any(group.frozen_since_ms for group in groups)
    columns += ["#MEMBERS", *(["FROZEN-SINCE"] if is_any_frozen else []), "TYPE"]
    rows = []
    for group in groups:
        strategy = group.protocol if is_classic(group) else group.assignor_name
        row: list[object] = [group.group_id, server, strategy, render_group_state(group.state)]
        if verbose:
            row += [group.group_epoch, None if is_classic(group) else group.assignment_epoch]
        row.append(len(group.members))
        if is_any_frozen:
            row.append(render_second(group.frozen_since_ms) if group.frozen_since_ms else None)
        rows.append([*row, render_type(group.group_type)])
    return _list(groups, columns, rows, 1)


def _list(
    groups: Sequence[admin_pb2.Group],
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    wide_columns: int,
) -> Listing:
    from cli.messages import as_dict

    content = {"groups": [as_dict(group) for group in groups]}
    return Listing("group.describe", columns, rows, content, "groups", wide_columns)
