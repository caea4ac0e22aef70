"""`muster log`: the list of its commands; each is in its own module."""

from __future__ import annotations

import typer

from cli.log.backup_commands import backup, restore
from cli.log.dump import dump
from cli.log.export import export
from cli.log.import_command import import_log
from cli.log.offsets_command import offsets
from cli.log.verify import verify

log_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Read, check, convert and back up logs: a Muster store or __consumer_offsets segments.",
)
log_app.command()(dump)
log_app.command()(offsets)
log_app.command()(verify)
log_app.command("import")(import_log)
log_app.command()(export)
log_app.command()(backup)
log_app.command()(restore)
