"""Spark for a command: what must be there, and how its errors become lines and exit codes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import CommandError, ExitCode
from cli.output import print_note
from pipeline.running import NotInstalled, SparkFailed, check_installed, running_session

if TYPE_CHECKING:
    from pipeline.running import SparkSession

PathOption = Annotated[
    str,
    typer.Option(
        "--path",
        metavar="PATH",
        help="A data folder, a folder of __consumer_offsets-N folders, one of these, or one .log.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master", help="Spark's master; that of spark-submit, or else this machine (local[*])."
    ),
]
FormatOption = Annotated[str, typer.Option("--format", help="Of what is written: parquet or json.")]


class Progress:
    """Tells people on standard error what has been done, and after how long."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._is_quiet = is_quiet
        self._started = time.monotonic()

    def tell(self, name: str, rows: int) -> None:
        """A table is there."""
        if not self._is_quiet:
            print_note(f"{time.monotonic() - self._started:6.1f} s  {name}: {rows} rows")

    def say(self, text: str) -> None:
        """A line of the summary."""
        if not self._is_quiet:
            print_note(text)


def check_spark() -> None:
    """Raises ``CommandError`` with what to install, unless Spark can start."""
    try:
        check_installed()
    except NotInstalled as error:
        raise CommandError(str(error), ExitCode.PRECONDITION) from error


@contextmanager
def running_spark(master: str | None, path: str) -> Iterator[SparkSession]:
    """A session for the time of a command; what goes wrong in it becomes a ``CommandError``.

    That there is something at ``path`` is asked before Spark is started, which takes seconds.
    """
    from pipeline.source.errors import (
        MissingConnector,
        NewerStore,
        NotALog,
        OptionError,
        SourceError,
    )
    from pipeline.source.logs.paths import find_path, is_of_other_system

    codes: dict[type[Exception], ExitCode] = {
        OptionError: ExitCode.USAGE,
        NotALog: ExitCode.NOT_FOUND,
        NewerStore: ExitCode.PRECONDITION,
        MissingConnector: ExitCode.PRECONDITION,
    }
    try:
        if not is_of_other_system(path):
            find_path(path)
        with running_session(master) as spark:
            yield spark
    except NotInstalled as error:
        raise CommandError(str(error), ExitCode.PRECONDITION) from error
    except SparkFailed as error:
        raise CommandError(str(error)) from error
    except SourceError as error:
        raise CommandError(str(error), codes.get(type(error), ExitCode.FAILED)) from error


@contextmanager
def noticing_interrupts() -> Iterator[Callable[[], bool]]:
    """What is interrupted or terminated meanwhile ends in good order: gives whether it was."""
    seen: list[int] = []

    def note(number: int, frame: object) -> None:
        seen.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_format(name: str) -> None:
    """Raises ``CommandError`` for a form that tables cannot have."""
    if name not in ("parquet", "json"):
        raise CommandError(f"--format is parquet or json, not {name}", ExitCode.USAGE)


def show_problems(problems: dict[str, int]) -> list[str]:
    """A line that counts what could not be read, or none."""
    if not problems:
        return []
    counts = ", ".join(f"{name} {count}" for name, count in sorted(problems.items()))
    return [f"could not be read, and kept as rows with a problem: {counts}"]


def show_time(value: Any) -> str | None:
    """A time as people and JSON have it."""
    return None if value is None else value.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
