"""The command `muster demo`; `cli.demo` implements it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.errors import CommandError


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")
    ] = False,
) -> None:
    """Show two live groups: members join and die, the server is killed, no commit is lost."""
    try:
        from cli.demo.run import run_demo
    except ModuleNotFoundError as missing:
        raise CommandError(f"the demo needs {missing.name}: run `make setup`") from missing

    raise typer.Exit(run_demo(keep=keep))
