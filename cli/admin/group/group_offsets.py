"""`muster group offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.admin.group.group_renders import GroupArgument, add_position
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
    from muster.v1 import group_pb2, types_pb2


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
    print_listing(add_position(compute_offsets(group, found), found), output)


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
