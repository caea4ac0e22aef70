"""`muster timeline`: the rebalances of a group in their order."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from cli.admin.group.group_renders import GroupArgument
from cli.admin.ledger.ledger_requests import UntilOption, ask, make_request
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
    timeout: TimeoutOption = DEFAULT_TIMEOUT,  # type: ignore[assignment]
) -> None:
    """List the rebalances of a group in their order."""
    from cli.admin.ledger.ledger_listing import compute_listing

    request = make_request(group, since, until)
    found, has_more = ask(request, limit, server, timeout, command_config)
    print_listing(compute_listing("timeline", group, found[::-1]), output)
    if has_more:
        print_note(f"there are earlier ones: --until {found[-1].began_ms} or a higher --limit")
