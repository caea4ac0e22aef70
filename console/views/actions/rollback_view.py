"""The way of a group back to the classic protocol, as it is shown."""

from __future__ import annotations

from collections.abc import Sequence

from console.views.actions.preview import Outcome, Preview, compute_token
from console.views.tables import Table, make_table
from muster.v1 import admin_pb2
from wording.commands import render_command
from wording.migrations import POLICY, ROLLED_BACK, find_consumer_members


def compute_rollback_preview(
    group: admin_pb2.Group, configs: Sequence[admin_pb2.GroupConfig]
) -> Preview:
    """What happens at once, and when the last member of the consumer protocol leaves."""
    left = find_consumer_members(group)
    policy = next((config.value for config in configs if config.name == POLICY), "")
    effects = [f"{POLICY} is {policy} now, and {ROLLED_BACK} afterwards."]
    if left:
        effects += [
            f"The group becomes a classic group when the last of these {len(left)} members leaves.",
            "Restart each of these clients with group.protocol=classic, one by one; the others "
            "keep working.",
        ]
    else:
        effects.append("It becomes a classic group at once, with its offsets and classic members.")
    return Preview(
        f"Move {group.group_id} back to the classic protocol",
        effects,
        "Move it back",
        compute_token([_make_sign(group), *configs]),
        render_command("migrate", "rollback", group.group_id),
        [_make_table(left)] if left else (),
    )


def compute_rollback_outcome(group_id: str, left: Sequence[admin_pb2.GroupMember]) -> Outcome:
    """The group, or the members that it waits for."""
    if left:
        lines = [
            f"{POLICY} is {ROLLED_BACK}: restart these {len(left)} clients with "
            "group.protocol=classic, one by one."
        ]
    else:
        lines = [f"{POLICY} is {ROLLED_BACK}, and the group is a classic group, with its offsets."]
    return Outcome(
        f"{group_id} is on its way back" if left else f"{group_id} is a classic group",
        lines,
        render_command("migrate", "rollback", group_id),
        [_make_table(left)] if left else (),
    )


def _make_sign(group: admin_pb2.Group) -> admin_pb2.Group:
    """What of a group decides about a conversion, without what changes as time goes by."""
    return admin_pb2.Group(
        group_id=group.group_id,
        group_type=group.group_type,
        group_epoch=group.group_epoch,
        members=[
            admin_pb2.GroupMember(member_id=member.member_id, protocol=member.protocol)
            for member in group.members
        ],
    )


def _make_table(left: Sequence[admin_pb2.GroupMember]) -> Table:
    return make_table(
        "members",
        "Members of the consumer protocol",
        ("Client id", "Host", "Member", "Instance id"),
        (
            (member.client_id, member.client_host, member.member_id, member.instance_id)
            for member in left
        ),
        len(left),
    )
