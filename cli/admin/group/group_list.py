"""`muster group list`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cli.admin.group.group_options import (
    FrozenOption,
    LimitOption,
    Order,
    OrderOption,
    PageTokenOption,
    PatternOption,
    ProtocolsOption,
    StatesOption,
    TopicOption,
    TypesOption,
    UnconvergedOption,
)
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
from wording.groups import render_group_state, render_type
from wording.times import render_second

if TYPE_CHECKING:
    from muster.v1 import admin_pb2

UNCONVERGED_STATES = ("Assigning", "Reconciling", "PreparingRebalance", "CompletingRebalance")
"""The states in which members are not yet where they are to be."""


def list_groups(
    *,
    states: StatesOption = None,
    types: TypesOption = None,
    protocols: ProtocolsOption = None,
    pattern: PatternOption = None,
    topic: TopicOption = "",
    unconverged: UnconvergedOption = False,
    frozen: FrozenOption = False,
    order: OrderOption = Order.ID,
    limit: LimitOption = None,
    page_token: PageTokenOption = "",
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
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
        topic_name=topic,
        order=f"GROUP_ORDER_{order.name}",
        page_token=page_token,
        frozen=frozen,
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
            render_second(group.frozen_since_ms) if group.frozen_since_ms else None,
        ]
        for group in groups
    ]
    columns = ["GROUP", "TYPE", "STATE", "#MEMBERS", "GROUP-EPOCH", "PROTOCOL", "FROZEN-SINCE"]
    content = {
        "groups": [as_dict(group) for group in groups],
        "next_page_token": next_page_token,
    }
    return Listing("group.list", columns, rows, content, "groups", wide_columns=2)
