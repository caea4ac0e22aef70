"""Writes a page about a log: ``spark-submit pipeline/jobs/report.py --path P --out O``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.jobs.command_line import DONE, USAGE, make_parser, run_job, say, tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MINUTE_MS = 60 * 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 failed, 2 usage."""
    parser = make_parser(__doc__)
    parser.add_argument("--out", required=True, type=Path, help="the page, a file of this machine")
    parser.add_argument("--group", action="append", default=[], help="whose owners are shown")
    parser.add_argument("--top", type=int, default=20, help="how many groups a list names")
    parser.add_argument("--offsets-retention-minutes", type=float, default=10_080)
    parser.add_argument("--tables", help="where the tables of the log stay")
    parser.add_argument("--end-offsets", type=Path, help="end offsets of topics, for lag")
    return run_job(parser, arguments, _run)


def _run(spark: SparkSession, options: argparse.Namespace) -> int:
    from pipeline.report.job import ReportOptions, write_report
    from pipeline.tables.end_offsets import EndOffset, EndOffsetsError, read_end_offsets

    ends: list[EndOffset] = []
    if options.end_offsets is not None:
        try:
            ends = read_end_offsets(options.end_offsets, datetime.now(UTC))
        except EndOffsetsError as error:
            say(str(error))
            return USAGE
    retention_ms = int(options.offsets_retention_minutes * _MINUTE_MS)
    made = write_report(
        spark,
        options.path,
        options.out,
        ReportOptions(options.top, tuple(options.group), retention_ms),
        metadata.version("muster"),
        tables=options.tables,
        end_offsets=ends,
        tell=tell,
    )
    say(f"{made.facts.records} records, {made.series.total} rebalances: {options.out}")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
