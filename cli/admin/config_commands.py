"""`muster config`: the settings in force and their origins, and the configs of groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.admin.configs.group_config_listings import compute_group_listing, parse_changes
from cli.admin.weigh_command import weigh
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    SETTINGS_CONTEXT,
    CommandConfigOption,
    ConfigOption,
    DryRunOption,
    OutputOption,
    QuietOption,
    ServerOption,
    TimeoutOption,
    resolve_settings,
)
from cli.output import Format, Listing, print_listing, print_note
from wording.configs import render_source

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show the settings in force and where they come from; read and change group configs.",
)

GroupOption = Annotated[str, typer.Option("--group", "-g", help="Id of the group.")]


@app.callback()
def config() -> None:
    """Show the settings in force and where they come from; read and change group configs."""


@app.command(context_settings=SETTINGS_CONTEXT)
def show(
    context: typer.Context,
    config: ConfigOption = None,
    origin: Annotated[
        bool, typer.Option("--origin", help="Show where each value comes from.")
    ] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Print every setting as `muster serve` would resolve it with the same flags."""
    from cli.settings.setting import render_value
    from model.secret import Secret
    from security.endpoints import Endpoint

    resolved = resolve_settings(context.args, config)
    for warning in (*resolved.warnings, *resolved.exposed):
        print_note(f"muster: {warning}")
    columns, rows, items = ["NAME", "VALUE"], [], []
    if origin:
        columns.append("ORIGIN")
    for name, value in resolved.values.items():
        source = resolved.origins[name]
        rows.append([name, render_value(value), str(source)][: len(columns)])
        plain = render_value(value) if isinstance(value, Endpoint | Secret) else value
        item = {"name": name, "value": list(plain) if isinstance(plain, tuple) else plain}
        items.append(item | {"origin": source.source, "detail": source.detail} if origin else item)
    listing = Listing("config.show", columns, rows, {"settings": items}, "settings")
    print_listing(listing, output)


# ------------------------------------------------------------------------------- group configs


@app.command()
def get(
    group: GroupOption,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Print the configs of a group on a running server: its own, and the server's defaults."""
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        configs = client.describe_group_configs(group)
    print_listing(compute_group_listing(group, configs), output)


@app.command("set")
def set_configs(
    assignments: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="Configs of the group.")
    ],
    group: GroupOption,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Set configs of a group, all or none. They take effect at once."""
    _alter(
        group,
        parse_changes(assignments),
        done="set",
        dry_run=dry_run,
        quiet=quiet,
        server=server,
        command_config=command_config,
        timeout=timeout,
    )


@app.command()
def unset(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Configs of the group.")],
    group: GroupOption,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Remove configs of a group: the server's settings apply again."""
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        configs = client.describe_group_configs(group)
        client.alter_group_configs(group, dict.fromkeys(names), dry_run)
    own = {config.name for config in configs if render_source(config.source) == "group"}
    _report(len(own & set(names)), "unset", dry_run, quiet)


app.command("weigh")(weigh)


def _alter(
    group: str,
    changes: dict[str, str | None],
    *,
    done: str,
    dry_run: bool,
    quiet: bool,
    server: str,
    command_config: Path | None,
    timeout: float,
) -> None:
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        client.alter_group_configs(group, changes, dry_run)
    _report(len(changes), done, dry_run, quiet)


def _report(count: int, done: str, dry_run: bool, quiet: bool) -> None:
    if not quiet:
        print_note(f"would be {done}: {count}" if dry_run else f"{done}: {count}")
