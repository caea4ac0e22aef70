"""Writes every table of a log: ``spark-submit pipeline/jobs/tables.py --path P --out O``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.jobs.command_line import DONE, USAGE, make_parser, run_job, say, tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 failed, 2 usage."""
    parser = make_parser(__doc__)
    parser.add_argument("--out", required=True, help="where the tables go, a folder each")
    parser.add_argument("--end-offsets", type=Path, help="end offsets of topics, for lag")
    return run_job(parser, arguments, _run)


def _run(spark: SparkSession, options: argparse.Namespace) -> int:
    from pipeline.tables.end_offsets import EndOffset, EndOffsetsError, read_end_offsets
    from pipeline.tables.job import write_tables

    ends: list[EndOffset] = []
    if options.end_offsets is not None:
        try:
            ends = read_end_offsets(options.end_offsets, datetime.now(UTC))
        except EndOffsetsError as error:
            say(str(error))
            return USAGE
    summary = write_tables(
        spark,
        options.path,
        options.out,
        file_format=options.format,
        end_offsets=ends,
        tell=tell,
    )
    for name, count in sorted(summary.problems.items()):
        say(f"could not be read, {name}: {count}")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
