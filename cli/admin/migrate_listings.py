"""The output of `muster migrate`: the plan, the progress, and the rollback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.output import Listing
from wording.groups import render_group_state, render_member_state, render_partitions, render_type
from wording.migrations import (
    POLICY,
    ROLLED_BACK,
    count_moving,
    find_left,
    is_consumer,
    render_change,
    render_protocol,
    render_verdict,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from muster.v1 import admin_pb2


# ------------------------------------------------------------------------------------------ plan


def compute_plan(plan: admin_pb2.PlanMigrationResponse) -> Listing:
    """A row for each member, under lines about the whole group."""
    rows = [
        [
            plan.group_id,
            member.client_id,
            render_verdict(member.verdict),
            "; ".join(_render_reasons(plan, member)),
            member.member_id,
            member.instance_id,
            "; ".join(map(render_change, member.changes)),
        ]
        for member in plan.members
    ]
    columns = ["GROUP", "CLIENT-ID", "VERDICT", "REASON", "CONSUMER-ID", "GROUP-INSTANCE-ID"]
    return Listing(
        "migrate.plan",
        [*columns, "SETTINGS"],
        rows,
        _as_dict(plan),
        "members",
        wide_columns=3,
        preface=_compute_plan_head(plan),
    )


def _compute_plan_head(plan: admin_pb2.PlanMigrationResponse) -> list[str]:
    from muster.v1 import admin_pb2

    group = plan.group_id
    if plan.group_type == admin_pb2.GROUP_TYPE_CONSUMER:
        head = f"{group} is a consumer group already: see `muster migrate status {group}`."
        if not plan.members:
            return [head]
        back = f"This is the way back, `muster migrate rollback {group}`."
        return [head, back, *_compute_group_lines(plan)]
    if not plan.members:
        verdict = render_verdict(plan.verdict)
        said = [f"{group}: {verdict}: it has no members, so its first member decides its type."]
        return said + [f"  {verdict}: {reason.detail}" for reason in plan.reasons]
    return _compute_group_lines(plan)


def _compute_group_lines(plan: admin_pb2.PlanMigrationResponse) -> list[str]:
    """The verdict on a group with members, its reasons, and what to set in every client."""
    group = plan.group_id
    strategy = f", {plan.protocol}" if plan.protocol else ""
    lines = [
        f"{group}: {render_verdict(plan.verdict)}: {render_group_state(plan.state)}{strategy}, "
        f"{POLICY} {plan.policy}"
    ]
    lines += (
        f"  {'BLOCKED' if reason.is_blocking else 'WARN'}: {reason.detail}"
        for reason in plan.reasons
    )
    # Changes that only some clients need are in the rows of those clients.
    common = [
        change
        for change in plan.members[0].changes
        if all(change in member.changes for member in plan.members)
    ]
    lines.append("Set in each client:")
    lines += (f"  {render_change(change)}: {change.reason}" for change in common)
    return lines


def _render_reasons(
    plan: admin_pb2.PlanMigrationResponse, member: admin_pb2.PlannedMember
) -> list[str]:
    """The member's own reasons; what blocks the group comes first if none of them blocks it."""
    own = [reason.detail for reason in member.reasons]
    if any(reason.is_blocking for reason in member.reasons):
        return own
    return [f"its group: {reason.kind}" for reason in plan.reasons if reason.is_blocking] + own


def compute_status(group: admin_pb2.Group, policy: str) -> Listing:
    """A row for each member; the policy decides which members are left to replace."""
    left = find_left(group, policy)
    moving = {member.member_id: count_moving(member) for member in group.members}
    if not is_consumer(group):
        # A classic group has no target assignment: its state shows whether it rebalances.
        moving = dict.fromkeys(moving, 0)
    rows = [
        [
            group.group_id,
            member.client_id,
            render_protocol(member.protocol),
            "yes" if member in left else "no",
            member.member_epoch if is_consumer(group) else None,
            render_member_state(member.state) if is_consumer(group) else None,
            moving[member.member_id],
            member.member_id,
            member.instance_id,
            render_partitions(member.assignment),
            render_partitions(member.target_assignment),
        ]
        for member in group.members
    ]
    columns = [
        "GROUP",
        "CLIENT-ID",
        "PROTOCOL",
        "TO-REPLACE",
        "CURRENT-EPOCH",
        "STATE",
        "#MOVING",
        "CONSUMER-ID",
        "GROUP-INSTANCE-ID",
        "CURRENT-ASSIGNMENT",
        "TARGET-ASSIGNMENT",
    ]
    content = _as_dict(group) | {
        "policy": policy,
        "to_replace": [member.member_id for member in left],
        "partitions_moving": sum(moving.values()),
    }
    preface = _compute_status_head(group, policy, len(left), sum(moving.values()))
    return Listing("migrate.status", columns, rows, content, "members", 4, preface)


def _compute_status_head(group: admin_pb2.Group, policy: str, left: int, moving: int) -> list[str]:
    state = f"{render_type(group.group_type)}, {render_group_state(group.state)}"
    if not is_consumer(group):
        return [f"{group.group_id}: {state}, generation {group.group_epoch}, {POLICY} {policy}"]
    lines = [
        f"{group.group_id}: {state}, group epoch {group.group_epoch}, target assignment epoch "
        f"{group.assignment_epoch}, {POLICY} {policy}"
    ]
    goal = "classic" if policy == ROLLED_BACK else "consumer"
    count = len(group.members)
    lines.append(
        f"{count - left} of {count} members speak the {goal} protocol, {left} to replace; "
        + (f"partitions still to move: {moving}" if moving else "no partitions to move")
    )
    return lines


def compute_rollback(
    group_id: str, consumer_members: Sequence[admin_pb2.GroupMember], dry_run: bool
) -> Listing:
    """The members that must leave before the group is converted; none if it is converted."""
    would = "would be" if dry_run else "is"
    if consumer_members:
        preface = [
            f"{group_id}: {POLICY} {would} {ROLLED_BACK}: the group becomes a classic group when "
            f"the last of these {len(consumer_members)} members leaves.",
            "Restart each of these clients with group.protocol=classic, one by one; the others "
            "keep working.",
        ]
    else:
        preface = [
            f"{group_id} {would} a classic group, with its offsets; {POLICY} {would} {ROLLED_BACK}."
        ]
    rows = [
        [group_id, member.client_id, member.client_host, member.member_id, member.instance_id]
        for member in consumer_members
    ]
    content = {
        "group_id": group_id,
        "policy": ROLLED_BACK,
        "is_classic": not consumer_members,
        "dry_run": dry_run,
        "to_replace": [_as_dict(member) for member in consumer_members],
    }
    columns = ["GROUP", "CLIENT-ID", "HOST", "CONSUMER-ID", "GROUP-INSTANCE-ID"]
    return Listing("migrate.rollback", columns, rows, content, "to_replace", preface=preface)


def _as_dict(message: Message) -> dict[str, object]:
    from cli.messages import as_dict

    return as_dict(message)
