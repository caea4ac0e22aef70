"""Looks for breaches of invariants: ``spark-submit pipeline/jobs/audit.py --path P``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.jobs.command_line import DONE, FAILED, make_parser, run_job, say, show, tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MINUTE_MS = 60 * 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 for a log that keeps them all, 1 for one that does not."""
    parser = make_parser(__doc__)
    parser.add_argument("--out", help="where what was found goes as tables")
    parser.add_argument("--offsets-retention-minutes", type=float, default=10_080)
    return run_job(parser, arguments, _run)


def _run(spark: SparkSession, options: argparse.Namespace) -> int:
    from pipeline.audit.job import audit_records, show_violation
    from pipeline.tables.records import read_records

    found = audit_records(
        read_records(spark, options.path),
        int(options.offsets_retention_minutes * _MINUTE_MS),
        out=options.out,
        file_format=options.format,
        tell=tell,
    )
    for violation in found.violations:
        show(show_violation(violation))
    say(f"{found.records} records of {found.groups} groups")
    if found.is_clean:
        return DONE
    say(found.verdict())
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
