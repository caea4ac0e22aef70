"""`muster group describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.admin.group.group_renders import (
    GroupArgument,
    add_position,
    is_classic,
    render_group_state,
    render_member_state,
    render_partitions,
    render_subscription,
    render_type,
)
from cli.log.as_of_option import AsOfOption, parse_as_of
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    OutputOption,
    ServerOption,
    TimeoutOption,
)
from cli.output import Format, Listing, print_listing

if TYPE_CHECKING:
    from muster.v1 import admin_pb2


def describe(
    group: GroupArgument,
    as_of: AsOfOption = None,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,  # type: ignore[assignment]
) -> None:
    """Show a group's epochs, and each member's epoch, state and partitions."""
    from cli.admin_client import connect

    position = parse_as_of(as_of)
    with connect(server, timeout, command_config) as client:
        found = client.describe_group(group, position)
    listing = compute_description(found.group)
    print_listing(add_position(listing, found), output)


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
    columns = [
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
    ]
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
    preface = [head]
    if not group.members:
        preface.append(f"Group {group.group_id} has no active members.")
    content = as_dict(group)
    return Listing("group.describe", columns, rows, content, "members", 4, preface)
