"""The command `muster demo`; `cli.demo` implements it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.errors import CommandError


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")
    ] = False,
    upstream: Annotated[
        bool,
        typer.Option(
            "--upstream",
            help="In front of a Kafka that it starts (needs Java 17 and Maven): a group moves to "
            "Muster and back.",
        ),
    ] = False,
) -> None:
    """Show live groups: members join and die, the server is killed, no commit is lost."""
    try:
        if upstream:
            from cli.demo.upstream.fronted_run import run_fronted_demo as run
        else:
            from cli.demo.run import run_demo as run
    except ModuleNotFoundError as missing:
        raise CommandError(f"the demo needs {missing.name}: run `make setup`") from missing

    raise typer.Exit(run(keep=keep))
