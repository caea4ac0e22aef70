"""`muster group list`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.admin.group.group_renders import render_group_state, render_type
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


def compute_list(groups: Sequence[admin_pb2.GroupSummary]) -> Listing:
    """The table and the response of `muster group list`."""
    from cli.messages import as_dict

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
    items = [as_dict(group) for group in groups]
    return Listing("group.list", columns, rows, {"groups": items}, "groups", wide_columns=1)
