"""`muster group config`: the configs of a group, and changes of them with a preview."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from cli.admin.configs.group_config_listings import (
    CHANGE_COLUMNS,
    compute_change_listing,
    compute_group_listing,
    parse_changes,
)
from cli.admin.group.group_renders import GroupArgument
from cli.asking import ask
from cli.errors import CommandError, ExitCode, usage_errors
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    DryRunOption,
    OutputOption,
    QuietOption,
    ServerOption,
    TimeoutOption,
    YesOption,
)
from cli.output import Format, Listing, print_listing, print_note
from wording.configs import Changes, check_names, compute_after

if TYPE_CHECKING:
    from cli.admin_client import AdminClient


def group_config(
    *,
    group: GroupArgument,
    to_set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a config. Repeatable."),
    ] = None,
    to_unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset", metavar="NAME", help="Let the server's value apply again. Repeatable."
        ),
    ] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show the configs of a group, or change some, all or none."""
    from cli.admin_client import connect

    changes = parse_changes(to_set or (), to_unset or ())
    if not changes and (yes or dry_run):
        raise CommandError("say what to change: --set NAME=VALUE, --unset NAME", ExitCode.USAGE)
    with connect(server, timeout, command_config) as client:
        if not changes:
            shown = compute_group_listing(group, client.describe_group_configs(group))
            print_listing(replace(shown, command="group.config", wide_columns=0), output)
            return
        listing = _change(client, group, changes, yes=yes, dry_run=dry_run)
    print_listing(listing, output)
    if not quiet:
        count = sum(new != old or source != was for _, new, old, source, was in listing.rows)
        print_note(f"would be changed: {count}" if dry_run else f"changed: {count}")


def _change(
    client: AdminClient, group: str, changes: Changes, *, yes: bool, dry_run: bool
) -> Listing:
    """Check the changes, ask, and make them; the listing of what they change."""
    before = client.describe_group_configs(group)
    with usage_errors():
        check_names(changes, before)
    client.alter_group_configs(group, changes, True)
    after = compute_after(changes, before)
    if dry_run:
        return compute_change_listing(group, changes, before, after)
    if not yes:
        rows = compute_change_listing(group, changes, before, after).rows
        ask(CHANGE_COLUMNS, rows, f"These configs of {group} will be changed, at once.")
    client.alter_group_configs(group, changes, False)
    return compute_change_listing(group, changes, before, client.describe_group_configs(group))
