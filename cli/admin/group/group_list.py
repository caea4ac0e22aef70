"""`muster group list`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.admin.group.group_renders import render_group_state, render_type
from cli.errors import CommandError, ExitCode
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    OutputOption,
    ServerOption,
    TimeoutOption,
)
from cli.output import Format, Listing, print_listing, print_note

if TYPE_CHECKING:
    from muster.v1 import admin_pb2

UNCONVERGED_STATES = ("Assigning", "Reconciling", "PreparingRebalance", "CompletingRebalance")
"""The states in which members are not yet where they are to be."""


class Order(StrEnum):
    """Orders of groups; among equals by id."""

    ID = "id"
    MEMBERS = "members"
    EPOCH = "epoch"
    STATE = "state"
    TYPE = "type"


def list_groups(
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state", metavar="STATE[,STATE]", help="Only groups in these states. Repeatable."
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE[,TYPE]", help="Only groups of these types. Repeatable."
        ),
    ] = None,
    protocols: Annotated[
        list[str] | None,
        typer.Option(
            "--protocol",
            metavar="TYPE",
            help="Only groups with this protocol type, such as consumer or connect. Repeatable.",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern",
            metavar="REGEX",
            help="Only groups whose whole id this regular expression (RE2) matches.",
        ),
    ] = None,
    unconverged: Annotated[
        bool,
        typer.Option("--unconverged", help="Only groups in the middle of a rebalance."),
    ] = False,
    order: Annotated[
        Order,
        typer.Option("--sort", help="Order: members and epoch begin with the highest."),
    ] = Order.ID,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="At most so many groups.")
    ] = None,
    page_token: Annotated[
        str,
        typer.Option(
            "--page-token",
            metavar="TOKEN",
            help="Go on where a list with --limit and the same options ended.",
        ),
    ] = "",
    output: OutputOption = Format.TABLE,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,  # type: ignore[assignment]
) -> None:
    """List groups with their types and states."""
    from cli.admin_client import connect
    from muster.v1 import admin_pb2

    if unconverged and states:
        raise CommandError("--unconverged is a choice of states: leave out --state", ExitCode.USAGE)
    if pattern == "":
        raise CommandError("--pattern is empty: leave it out for all groups", ExitCode.USAGE)
    asked = admin_pb2.ListGroupsRequest(
        states=parse_states(UNCONVERGED_STATES if unconverged else states or ()),
        types=parse_types(types or ()),
        protocol_types=protocols or (),
        pattern=pattern or "",
        order=f"GROUP_ORDER_{order.name}",
        page_token=page_token,
    )
    with connect(server, timeout, command_config) as client:
        groups, token = client.list_groups(asked, limit)
    print_listing(compute_list(groups, token), output)
    if token and output is not Format.JSON and output is not Format.YAML:
        print_note(f"there are more groups: --page-token {token}")


def parse_states(texts: Iterable[str]) -> list[str]:
    """The states in the protocol's spelling, from Kafka's, in any case."""
    from muster.v1 import admin_pb2

    known = {render_group_state(number): name for name, number in admin_pb2.GroupState.items()}
    return _find_names("state", texts, known)


def parse_types(texts: Iterable[str]) -> list[str]:
    """The group types in the protocol's spelling, from Kafka's, in any case."""
    from muster.v1 import admin_pb2

    known = {render_type(number): name for name, number in admin_pb2.GroupType.items()}
    return _find_names("type", texts, known)


def _find_names(what: str, texts: Iterable[str], known: dict[str, str]) -> list[str]:
    del known["Unspecified"]
    lower = {shown.lower(): name for shown, name in known.items()}
    found = []
    for word in (word.strip() for text in texts for word in text.split(",")):
        name = lower.get(word.lower())
        if name is None:
            raise CommandError(
                f"{word!r} is no {what} of a group; one of: {', '.join(known)}", ExitCode.USAGE
            )
        found.append(name)
    return found


def compute_list(groups: Sequence[admin_pb2.GroupSummary], next_page_token: str = "") -> Listing:
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
    content = {
        "groups": [as_dict(group) for group in groups],
        "next_page_token": next_page_token,
    }
    return Listing("group.list", columns, rows, content, "groups", wide_columns=1)
