"""Spark for commands: checks that it is installed, and converts its errors into exit codes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import CommandError, ExitCode
from cli.pipeline.log_options import check_log, source_failures
from cli.progress import Progress, compute_share
from pipeline.running import NotInstalled, SparkFailed, check_installed, running_session

if TYPE_CHECKING:
    from pipeline.running import SparkSession

MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master", help="Spark master; by default spark-submit's, or this machine (local[*])."
    ),
]
FormatOption = Annotated[str, typer.Option("--format", help="Output format: parquet or json.")]


def check_spark() -> None:
    """Raise ``CommandError`` with what to install unless Spark can start."""
    try:
        check_installed()
    except NotInstalled as error:
        raise CommandError(str(error), ExitCode.PRECONDITION) from error


@contextmanager
def running_spark(
    master: str | None, path: str | None, progress: Progress, step: str
) -> Iterator[SparkSession]:
    """A Spark session for one command, at work on ``step``; errors become ``CommandError``.

    Looks at the log before it starts Spark, which takes seconds; ``path`` is ``None`` if there is
    nothing to look at.
    """
    check_spark()
    if path is not None:
        check_log(path)
    try:
        with progress, source_failures():
            progress.begin("Spark starts")
            with running_session(master) as spark:
                begin_step(progress, spark, step)
                yield spark
    except NotInstalled as error:
        raise CommandError(str(error), ExitCode.PRECONDITION) from error
    except SparkFailed as error:
        raise CommandError(str(error)) from error


def begin_step(progress: Progress, spark: SparkSession, step: str) -> None:
    """A step of which Spark's tasks say how far it is."""
    progress.begin(step, lambda: _count_tasks(spark))


def _count_tasks(spark: SparkSession) -> str:
    """The tasks of what Spark does now, which is seldom all of a step."""
    # It may be stopping, and there is nothing that progress could say about that.
    with suppress(Exception):
        tracker = spark.sparkContext.statusTracker()
        found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        stages = [stage for stage in found if stage is not None]
        if stages:
            done = sum(stage.numCompletedTasks for stage in stages)
            return compute_share(done, sum(stage.numTasks for stage in stages), "tasks")
    return ""


@contextmanager
def noticing_interrupts() -> Iterator[Callable[[], bool]]:
    """Defer SIGINT and SIGTERM while the body runs; yields a function that tells if one came."""
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
    """Raise ``CommandError`` unless tables can be written in this format."""
    if name not in ("parquet", "json"):
        raise CommandError(f"--format must be parquet or json, not {name}", ExitCode.USAGE)


def show_problems(problems: dict[str, int]) -> list[str]:
    """A line that counts unreadable records, or none."""
    if not problems:
        return []
    counts = ", ".join(f"{name} {count}" for name, count in sorted(problems.items()))
    return [f"could not be read (kept as rows with a problem): {counts}"]


def show_time(value: Any) -> str | None:
    """Render a time for people and JSON."""
    return None if value is None else value.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
