"""`muster config`: which settings are in force, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import SETTINGS_CONTEXT, ConfigOption, OutputOption, resolve_settings
from cli.output import Format, Listing, print_listing, print_note
from cli.settings import SETTINGS
from cli.settings.setting import Address, render_value

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Which settings are in force, and why."
)


@app.callback()
def config() -> None:
    """Which settings are in force, and why."""


@app.command(context_settings=SETTINGS_CONTEXT)
def show(
    context: typer.Context,
    config: ConfigOption = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value is from.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Print every setting as `muster serve` would have it with the same flags."""
    resolved = resolve_settings(context.args, config)
    for warning in resolved.warnings:
        print_note(f"muster: {warning}")
    columns, rows, items = ["NAME", "VALUE"], [], []
    if origin:
        columns.append("ORIGIN")
    for name in SETTINGS:
        value, source = resolved.values[name], resolved.origins[name]
        rows.append([name, render_value(value), str(source)][: len(columns)])
        plain = str(value) if isinstance(value, Address) else value
        item = {"name": name, "value": list(plain) if isinstance(plain, tuple) else plain}
        items.append(item | {"origin": source.source, "detail": source.detail} if origin else item)
    listing = Listing("config.show", columns, rows, {"settings": items}, "settings")
    print_listing(listing, output)
