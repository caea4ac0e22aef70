"""Which classic groups can migrate: ``spark-submit pipeline/jobs/readiness.py --path P``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.jobs.command_line import DONE, make_parser, run_job, show, tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, also where groups are blocked."""
    parser = make_parser(__doc__)
    parser.add_argument("--out", help="where the table goes")
    parser.add_argument("--max-size", type=int, help="group.consumer.max.size")
    parser.add_argument("--session-timeout-ms", type=int, default=45_000)
    return run_job(parser, arguments, _run)


def _run(spark: SparkSession, options: argparse.Namespace) -> int:
    from coordinator.core.migration_readiness import UNLIMITED, MigrationRules
    from pipeline.audit.readiness import compute_readiness
    from pipeline.tables.records import read_records
    from pipeline.tables.writing import TableFolder

    rules = MigrationRules(True, options.max_size or UNLIMITED, options.session_timeout_ms)
    table = compute_readiness(read_records(spark, options.path), rules).persist()
    if options.out is not None:
        folder = TableFolder(spark, options.out, options.format)
        folder.recover()
        tell("readiness", folder.write("readiness", table))
    for row in table.orderBy("group_id").toLocalIterator():
        show(json.dumps(row.asDict(recursive=True), default=str, ensure_ascii=False))
    return DONE


if __name__ == "__main__":
    sys.exit(main())
