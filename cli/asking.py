"""Confirmation before a command does something that cannot be undone."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from cli.errors import CommandError, ExitCode
from cli.output import make_printable, print_note, print_table


def ask(
    columns: Sequence[str], rows: Sequence[Sequence[object]], effect: str | None = None
) -> None:
    """Show on standard error what will change, and ask; raise unless the user confirms."""
    if rows:
        print_table(columns, rows, sys.stderr)
    if effect is not None:
        print_note(effect)
    if not sys.stdin.isatty():
        raise CommandError(
            "cannot ask for confirmation, standard input is not a terminal: add --yes",
            ExitCode.USAGE,
        )
    if not typer.confirm("Continue?", err=True):
        raise CommandError("nothing was changed")


def raise_failures(failed: Sequence[CommandError]) -> None:
    """Raise one error for all failures; its exit code is theirs if they agree, else ``FAILED``."""
    if not failed:
        return
    codes = {error.exit_code for error in failed}
    code = codes.pop() if len(codes) == 1 else ExitCode.FAILED
    raise CommandError("\n".join(make_printable(error.message) for error in failed), code)
