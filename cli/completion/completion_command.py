"""The command `muster completion`, which prints; it changes no file of its user."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

from cli.errors import CommandError

PROGRAM: Final = "muster"
VARIABLE: Final = "_MUSTER_COMPLETE"
"""What the scripts set when they ask for completions."""


class Shell(StrEnum):
    """Shells that can be asked to complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register() -> None:
    """Let typer answer the scripts; it does by itself only where its own options are."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()


def completion(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(help="The shell that reads what is printed.")],
) -> None:
    """Print what makes a shell complete commands, options, settings, groups and topics."""
    from typer.completion import shell_complete

    register()
    # Which commands there are is asked for when something is completed.
    command = context.find_root().command
    if shell_complete(command, {}, PROGRAM, VARIABLE, f"source_{shell}"):
        raise CommandError(f"{shell} cannot be told to complete")
