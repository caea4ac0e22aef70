"""`muster demo`, the command; what it shows is in `cli.demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.errors import CommandError


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")
    ] = False,
) -> None:
    """Show two groups live: members join and die, the server is killed, nothing is lost."""
    try:
        from cli.demo.run import run_demo
    except ModuleNotFoundError as missing:
        raise CommandError(f"the demo needs {missing.name}: run `make setup`") from missing

    raise typer.Exit(run_demo(keep=keep))
