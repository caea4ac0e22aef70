"""`muster why`: why a group rebalanced."""

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
from cli.output import Format, print_listing

LIMIT: Final = 5


def why(
    *,
    group: GroupArgument,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only what began since then: ISO 8601, ms since 1970, or an age such as 90m.",
        ),
    ] = None,
    until: UntilOption = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="The last N rebalances.")
    ] = LIMIT,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Say why a group rebalanced: the last rebalances, the last one first."""
    from cli.admin.ledger.ledger_listing import compute_why
    from cli.server_calls import open_calls

    request = make_request(group, since, until)
    with open_calls(server, timeout, command_config) as calls:
        found, _ = ask(calls, request, limit)
    print_listing(compute_why(group, found), output)
