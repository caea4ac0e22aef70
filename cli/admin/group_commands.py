"""`muster group`: groups, their members, assignments and offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from cli.admin.group_delete_commands import delete, delete_offsets
from cli.admin.resets.group_reset_commands import reset, seek
from cli.log.as_of_option import AsOfOption, parse_as_of, render_position
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
    from muster.v1 import admin_pb2, group_pb2, types_pb2

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List, describe, reset and delete groups."
)


GroupArgument: TypeAlias = Annotated[str, typer.Argument(help="Id of the group.")]


@app.command("list")
def list_groups(
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,  # type: ignore[assignment]
) -> None:
    """List groups with their types and states."""
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        groups = client.list_groups()
    print_listing(compute_list(groups), output)


@app.command()
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
    print_listing(_add_position(listing, found), output)


@app.command()
def offsets(
    group: GroupArgument,
    require_stable: Annotated[
        bool,
        typer.Option(
            "--require-stable", help="Omit the offset of a partition with an open transaction."
        ),
    ] = False,
    as_of: AsOfOption = None,
    output: OutputOption = Format.TABLE,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,  # type: ignore[assignment]
) -> None:
    """Show the committed offsets of a group."""
    from cli.admin_client import connect

    position = parse_as_of(as_of)
    with connect(server, timeout, command_config) as client:
        found = client.fetch_offsets(group, require_stable, position)
        if not found.topics:
            # FetchOffsets answers for an unknown group too, with no offsets; this call fails.
            client.describe_group(group, position)
    print_listing(_add_position(compute_offsets(group, found), found), output)


app.command()(delete)
app.command("delete-offsets")(delete_offsets)
app.command()(reset)
app.command()(seek)


def compute_list(groups: Sequence[admin_pb2.GroupSummary]) -> Listing:
    """The table and the response of `muster group list`."""
    rows = [
        [
            group.group_id,
            render_type(group.group_type),
            render_group_state(group.state),
            group.members,
            group.group_epoch,
            group.protocol_type,
        ]
        for group in groups
    ]
    columns = ["GROUP", "TYPE", "STATE", "#MEMBERS", "GROUP-EPOCH", "PROTOCOL"]
    items = [_as_dict(group) for group in groups]
    return Listing("group.list", columns, rows, {"groups": items}, "groups", wide_columns=1)


def compute_description(group: admin_pb2.Group) -> Listing:
    """A table of the group's members under a line about the group itself.

    Members of a classic group have no epoch, state or target of their own.
    """
    rows = [
        [
            group.group_id,
            member.member_id,
            member.client_host,
            member.client_id,
            sum(len(topic.partitions) for topic in member.assignment),
            "-" if _is_classic(group) else member.member_epoch,
            "-" if _is_classic(group) else render_member_state(member.state),
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
    if _is_classic(group):
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
    content = _as_dict(group)
    return Listing("group.describe", columns, rows, content, "members", 4, preface)


def compute_offsets(group_id: str, response: group_pb2.FetchOffsetsResponse) -> Listing:
    """Offsets and lag by topic and partition.

    An error takes the place of an offset that is not known. The lag is not known without both the
    committed offset and the end.
    """
    from cli.log.offsets_command import render_text

    columns = [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "LEADER-EPOCH",
        "METADATA",
        "ERROR",
    ]
    rows = [
        [
            group_id,
            topic.topic_name,
            row.partition,
            row.offset if row.HasField("offset") else None,
            row.end_offset if row.HasField("end_offset") else None,
            compute_lag(row),
            row.leader_epoch if row.HasField("leader_epoch") else None,
            render_text(row.metadata),
            row.error.reason,
        ]
        for topic in sorted(response.topics, key=lambda topic: topic.topic_name)
        for row in sorted(topic.partitions, key=lambda row: row.partition)
    ]
    fields = (
        "topic",
        "partition",
        "offset",
        "end_offset",
        "lag",
        "leader_epoch",
        "metadata",
        "error",
    )
    items = [dict(zip(fields, row[1:], strict=True)) for row in rows]
    content = {"group_id": group_id, "offsets": items}
    return Listing("group.offsets", columns, rows, content, "offsets")


def compute_lag(row: types_pb2.CommittedOffset) -> int | None:
    """How many records are left to read; never negative, though the end may be an older one."""
    if not row.HasField("offset") or not row.HasField("end_offset"):
        return None
    return max(row.end_offset - row.offset, 0)


def _add_position(
    listing: Listing, response: admin_pb2.DescribeGroupResponse | group_pb2.FetchOffsetsResponse
) -> Listing:
    """Add the log position of an answer about the past."""
    if not response.HasField("position"):
        return listing
    position = response.position
    content = {**listing.content, "position": _as_dict(position)}
    preface = [render_position(position), *listing.preface]
    return replace(listing, content=content, preface=preface)


def _is_classic(group: admin_pb2.Group) -> bool:
    from muster.v1 import admin_pb2

    return group.group_type == admin_pb2.GROUP_TYPE_CLASSIC


def render_partitions(topics: Sequence[types_pb2.TopicPartitions]) -> str:
    """Render partitions as ``orders:0,1,2;payments:0``, as Kafka's tool prints assignments."""
    return ";".join(
        f"{topic.topic_name}:{','.join(map(str, topic.partitions))}" for topic in topics
    )


def render_subscription(member: admin_pb2.GroupMember) -> str:
    """Render the topic names, and the regular expression between slashes."""
    regex = member.subscribed_topic_regex
    return ",".join([*member.subscribed_topic_names, *([f"/{regex}/"] if regex else [])])


def render_type(group_type: int) -> str:
    """Render a group type as ``Consumer``, ``Classic``, ``Share`` or ``Streams``."""
    from muster.v1 import admin_pb2

    return _render_enum(admin_pb2.GroupType.Name(group_type), "GROUP_TYPE_")


def render_group_state(state: int) -> str:
    """Render a group state as Kafka does: ``Stable``, ``PreparingRebalance``."""
    from muster.v1 import admin_pb2

    return _render_enum(admin_pb2.GroupState.Name(state), "GROUP_STATE_")


def render_member_state(state: int) -> str:
    """Render a member state as in Kafka's records: ``STABLE``, ``UNREVOKED_PARTITIONS``."""
    from muster.v1 import admin_pb2

    return admin_pb2.MemberState.Name(state).removeprefix("MEMBER_STATE_")


def _render_enum(name: str, prefix: str) -> str:
    return "".join(word.capitalize() for word in name.removeprefix(prefix).split("_"))


def _as_dict(
    message: admin_pb2.Group | admin_pb2.GroupSummary | types_pb2.LogPosition,
) -> dict[str, object]:
    from cli.messages import as_dict

    return as_dict(message)
