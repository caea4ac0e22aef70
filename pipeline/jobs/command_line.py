"""What the jobs have in common as programs for ``spark-submit``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pipeline.jobs.running import NotInstalled, SparkFailed, running_session
from pipeline.source.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DONE, FAILED, USAGE, PRECONDITION = 0, 1, 2, 4

Job = Callable[["SparkSession", argparse.Namespace], int]


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """With the options that every job has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--path", required=True, help="a store, or Kafka's segments")
    parser.add_argument("--format", default="parquet", choices=("parquet", "json"))
    parser.add_argument("--master", help="Spark's master, where spark-submit has said none")
    return parser


def run_job(parser: argparse.ArgumentParser, arguments: Sequence[str] | None, job: Job) -> int:
    """Runs a job in a session of its own; the exit code."""
    options = parser.parse_args(arguments)
    try:
        with running_session(options.master) as spark:
            return job(spark, options)
    except NotInstalled as error:
        say(str(error))
        return PRECONDITION
    except (SourceError, SparkFailed, OSError) as error:
        say(str(error))
        return FAILED


def tell(name: str, rows: int) -> None:
    """A table is there."""
    say(f"{name}: {rows} rows")


def say(text: str) -> None:
    """A line for people, on standard error."""
    sys.stderr.write(text + "\n")


def show(text: str) -> None:
    """A line of data."""
    sys.stdout.write(text + "\n")
