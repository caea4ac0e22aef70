"""The command line `muster`: the list of its commands.

This module does not import grpc, rich or the server, so that `muster topic list` answers faster
than a JVM starts; a command imports what it needs when it runs. `main` imports only the command, or
the commands of the group, that is asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

import typer

from cli.errors import CommandError
from cli.options import SETTINGS_CONTEXT, OutputOption
from cli.output import Format, print_listing, print_note

COMMANDS: Final = {
    "completion": ("cli.completion.completion_command", "completion"),
    "demo": ("cli.demo.demo_command", "demo"),
    "load": ("cli.load.load_command", "load"),
    "whatif": ("cli.admin.whatif.whatif_command", "whatif"),
    "why": ("cli.admin.ledger.why_command", "why"),
    "timeline": ("cli.admin.ledger.timeline_command", "timeline"),
}
"""The module of each command that has no group, and its name there; in the order of the help."""

GROUPS: Final = {
    "topic": ("cli.admin.topic_commands", "app"),
    "group": ("cli.admin.group.group_commands", "make_group_app"),
    "migrate": ("cli.admin.migrate_commands", "app"),
    "txn": ("cli.admin.txn_commands", "app"),
    "acl": ("cli.admin.acl_commands", "app"),
    "quota": ("cli.admin.quota_commands", "app"),
    "user": ("cli.admin.user_commands", "app"),
    "config": ("cli.admin.config_commands", "app"),
    "upstream": ("cli.upstream.upstream_commands", "app"),
    "log": ("cli.log.app", "log_app"),
    "pipeline": ("cli.pipeline.app", "pipeline_app"),
}
"""The module of each group of commands, and its name there, or that of what makes it; in the order
of the help."""


def version(output: OutputOption = Format.TABLE) -> None:
    """Print the versions of Muster, Python and the main packages."""
    from cli.version import compute_version_listing

    print_listing(compute_version_listing(), output)


@cache
def make_app(only: str | None = None, of_group: str | None = None) -> typer.Typer:
    """All commands, or one alone, or those of one group, which are there in half the time.

    ``of_group`` is the command of the group that is asked for; some groups import that one alone.
    """
    made = typer.Typer(
        name="muster",
        help="A consumer-group coordinator: KIP-848 for Kafka clients and over gRPC.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        # `muster completion` prints the scripts; typer's own option writes into files of the user.
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # With a callback a command that is alone keeps its name.
    made.callback()(_do_nothing)
    if only is None:
        _add_own_commands(made)
    for name, (module, attribute) in COMMANDS.items():
        if only in (None, name):
            made.command(name)(getattr(import_module(module), attribute))
    for name, (module, attribute) in GROUPS.items():
        if only in (None, name):
            found = getattr(import_module(module), attribute)
            made.add_typer(found if isinstance(found, typer.Typer) else found(of_group), name=name)
    return made


def _do_nothing() -> None:
    pass


def _add_own_commands(made: typer.Typer) -> None:
    from cli.completion.settings_command import SettingsCommand
    from cli.doctor.doctor_command import DOCTOR_EPILOG, doctor, ready
    from cli.serve.serve_command import SERVE_EPILOG, serve

    for command, epilog in ((serve, SERVE_EPILOG), (doctor, DOCTOR_EPILOG), (ready, None)):
        made.command(cls=SettingsCommand, context_settings=SETTINGS_CONTEXT, epilog=epilog)(command)
    made.command()(version)


def __getattr__(name: str) -> typer.Typer:
    """``app`` with all commands, made when it is first asked for."""
    if name != "app":
        raise AttributeError(name)
    return make_app()


def _find_completed(environment: Mapping[str, str]) -> str | None:
    """The command whose words a shell has completed; ``None`` for the command itself, and else."""
    if "_MUSTER_COMPLETE" not in environment:
        return None
    from cli.completion.completion_command import register

    register()
    text = environment.get("_TYPER_COMPLETE_ARGS", environment.get("COMP_WORDS", ""))
    match text.split():
        case [_, first, _, *_]:
            return first
        case [_, first] if text.endswith(" "):
            return first
        case _:
            return None


def main() -> None:
    """Run a command and exit with a code of `cli.errors.ExitCode`."""
    # gRPC's core prints a line for each handshake that fails, whoever sends them.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    first = sys.argv[1] if len(sys.argv) > 1 else _find_completed(os.environ)
    second = sys.argv[2] if len(sys.argv) > 2 else None
    try:
        make_app(first if first in {**COMMANDS, **GROUPS} else None, second)()
    except CommandError as error:
        for line in error.message.splitlines():
            print_note(f"muster: {line}")
        sys.exit(error.exit_code)
