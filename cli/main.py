"""The command line `muster`: the list of its commands.

This module does not import grpc, rich or the server, so that `muster topic list` answers faster
than a JVM starts; a command imports what it needs when it runs.
"""

from __future__ import annotations

import os
import sys

import typer

from cli.admin import (
    acl_commands,
    config_commands,
    migrate_commands,
    quota_commands,
    topic_commands,
    txn_commands,
    user_commands,
)
from cli.admin.group import group_commands
from cli.admin.whatif.whatif_command import whatif
from cli.demo.demo_command import demo
from cli.errors import CommandError
from cli.load.load_command import load
from cli.log.app import log_app
from cli.options import SETTINGS_CONTEXT, OutputOption
from cli.output import Format, print_note
from cli.pipeline.app import pipeline_app
from cli.serve.serve_command import SERVE_EPILOG, serve
from cli.upstream import upstream_commands

app = typer.Typer(
    name="muster",
    help="A consumer-group coordinator: KIP-848 for Kafka clients and over gRPC.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(context_settings=SETTINGS_CONTEXT, epilog=SERVE_EPILOG)(serve)
app.command()(demo)
app.command()(load)
app.command()(whatif)
app.add_typer(topic_commands.app, name="topic")
app.add_typer(group_commands.app, name="group")
app.add_typer(migrate_commands.app, name="migrate")
app.add_typer(txn_commands.app, name="txn")
app.add_typer(acl_commands.app, name="acl")
app.add_typer(quota_commands.app, name="quota")
app.add_typer(user_commands.app, name="user")
app.add_typer(config_commands.app, name="config")
app.add_typer(upstream_commands.app, name="upstream")
app.add_typer(log_app, name="log")
app.add_typer(pipeline_app, name="pipeline")


@app.command()
def version(output: OutputOption = Format.TABLE) -> None:
    """Print the versions of Muster, Python and the main packages."""
    from cli.output import print_listing
    from cli.version import compute_version_listing

    print_listing(compute_version_listing(), output)


def main() -> None:
    """Run a command and exit with a code of `cli.errors.ExitCode`."""
    # gRPC's core prints a line for each handshake that fails, whoever sends them.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        app()
    except CommandError as error:
        for line in error.message.splitlines():
            print_note(f"muster: {line}")
        sys.exit(error.exit_code)
