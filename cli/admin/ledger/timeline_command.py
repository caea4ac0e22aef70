"""`muster timeline`: the rebalances of a group and changes of its offsets, in their order."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from cli.admin.group.group_renders import GroupArgument
from cli.admin.ledger.ledger_requests import UntilOption, ask, ask_changes, make_request
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    OutputOption,
    ServerOption,
    TimeoutOption,
)
from cli.output import Format, print_listing, print_note

LIMIT: Final = 1_000


def timeline(
    *,
    group: GroupArgument,
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="TIME",
            help="What began since then: ISO 8601, ms since 1970, or an age such as 90m.",
        ),
    ] = "1h",
    until: UntilOption = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="The last N of them.")
    ] = LIMIT,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """List the rebalances of a group, and resets and deletions of its offsets, in their order."""
    from cli.admin.ledger.timeline_listing import compute_events, compute_timeline
    from cli.server_calls import open_calls

    request = make_request(group, since, until)
    with open_calls(server, timeout, command_config) as calls:
        changes, has_more_changes = ask_changes(calls, request, limit)
        rebalances, has_more = ask(calls, request, limit, may_be_missing=bool(changes))
    events = compute_events(group, rebalances, changes)
    shown = events[-limit:]
    print_listing(compute_timeline(group, shown), output)
    if has_more or has_more_changes or len(shown) < len(events):
        print_note(f"there are earlier ones: --until {shown[0].at_ms} or a higher --limit")
