"""`muster group watch`."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.admin.group.group_renders import GroupArgument
from cli.errors import CommandError, ExitCode
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    QuietOption,
    ServerOption,
    TimeoutOption,
    parse_duration,
)

if TYPE_CHECKING:
    from cli.admin.watch.looks import Looks
    from cli.admin.watch.watching import Teller
    from cli.admin_client import AdminClient
    from muster.v1 import admin_pb2

INTERVAL_MIN_S: Final = 0.1


class WatchFormat(StrEnum):
    """Output formats of what has no end."""

    TABLE = "table"
    JSONL = "jsonl"


def watch_group(
    *,
    group: GroupArgument,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            parser=parse_duration,
            metavar="DURATION",
            help="Time between two looks; without it the server tells of each change.",
        ),
    ] = None,
    quiet: QuietOption = False,
    output: Annotated[
        WatchFormat,
        typer.Option("--output", "-o", help="Lines below a table on a terminal, or JSON lines."),
    ] = WatchFormat.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show what changes in a group, until it is gone or Ctrl-C."""
    from cli.admin.watch.watching import watch
    from cli.admin_client import connect

    if interval is not None and interval < INTERVAL_MIN_S:
        raise CommandError(f"--interval is at least {INTERVAL_MIN_S:g}s", ExitCode.USAGE)
    try:
        with connect(server, timeout, command_config) as client, ExitStack() as stack:
            looks = _make_looks(stack, client, group, interval)
            teller = _make_teller(stack, output, quiet)
            watch(looks, teller, now_s=time.monotonic, patience_s=timeout)
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read the lines has seen enough; the interpreter would flush again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _make_looks(
    stack: ExitStack, client: AdminClient, group: str, interval_s: float | None
) -> Looks:
    from cli.admin.watch.group_stream import open_group_stream
    from cli.admin.watch.looks import INTERVAL_S, AskedLooks, ToldLooks

    def describe() -> admin_pb2.Group:
        return client.describe_group(group).group

    asked = AskedLooks(describe, interval_s or INTERVAL_S, time.monotonic, time.sleep)
    if interval_s is not None:
        return asked
    told = ToldLooks(lambda: open_group_stream(client, group, time.monotonic), asked, time.sleep)
    stack.callback(told.close)
    return told


def _make_teller(stack: ExitStack, output: WatchFormat, quiet: bool) -> Teller:
    from rich.console import Console

    from cli.admin.watch.tellers import JsonLines, Lines, Screen

    if output is WatchFormat.JSONL:
        return JsonLines(time.time, quiet)
    console = Console(highlight=False, soft_wrap=True)
    if console.is_terminal:
        return stack.enter_context(Screen(console, time.time))
    return Lines(time.time, quiet)
