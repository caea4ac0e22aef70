"""Asking before something is done that cannot be undone."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from cli.errors import CommandError, ExitCode
from cli.output import print_note, print_table


def ask(
    columns: Sequence[str], rows: Sequence[Sequence[object]], effect: str | None = None
) -> None:
    """Show on standard error what it is about and what will happen; raises unless it is wanted."""
    if rows:
        print_table(columns, rows, sys.stderr)
    if effect is not None:
        print_note(effect)
    if not sys.stdin.isatty():
        raise CommandError("not a terminal, so nobody can be asked: add --yes", ExitCode.USAGE)
    if not typer.confirm("Go on?", err=True):
        raise CommandError("nothing was changed")


def raise_failures(failed: Sequence[CommandError]) -> None:
    """One failure exits as it is; several of different kinds are a plain failure."""
    if not failed:
        return
    codes = {error.exit_code for error in failed}
    code = codes.pop() if len(codes) == 1 else ExitCode.FAILED
    raise CommandError("\n".join(error.message for error in failed), code)
