"""`muster pipeline report`: an HTML page about the groups of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.options import QuietOption
from cli.pipeline.log_options import (
    ServerConfigOption,
    ServerOption,
    check_can_write,
    check_folder,
    find_log,
    read_end_offsets_file,
)
from cli.pipeline.spark import (
    MasterOption,
    begin_step,
    check_spark,
    running_spark,
    show_problems,
)
from cli.progress import Progress
from cli.version import compute_version

_MINUTE_MS = 60 * 1000

LogOrTablesOption = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="PATH",
        help="A data folder, Kafka segments, or a folder that `tables` has written.",
    ),
]
EndOffsetsOption = Annotated[
    Path | None,
    typer.Option(
        "--end-offsets",
        metavar="FILE",
        help="End offsets, for lag: JSON lines with topic, partition, end_offset and ts.",
    ),
]


def report(
    *,
    path: LogOrTablesOption = None,
    server: ServerOption = None,
    server_config: ServerConfigOption = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The HTML file to write.")],
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            help="Show the owners of this group's partitions. Repeatable; by default, of the six "
            "worst groups.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, max=1000, help="How many groups each list has.")
    ] = 20,
    retention_minutes: Annotated[
        float,
        typer.Option("--offsets-retention-minutes", help="offsets.retention.minutes of the log."),
    ] = 10_080,
    tables: Annotated[
        str | None,
        typer.Option("--tables", metavar="FOLDER", help="Also keep the tables in this folder."),
    ] = None,
    end_offsets: EndOffsetsOption = None,
    has_audit: Annotated[
        bool, typer.Option("--audit/--no-audit", help="Audit the log for the page as well.")
    ] = True,
    master: MasterOption = None,
    quiet: QuietOption = False,
) -> None:
    """Write one self-contained HTML file: rebalances, owners, lag, offsets about to expire."""
    check_spark()
    if out.is_dir():
        raise CommandError(
            f"{out} is a folder; --out must be a file such as report.html", ExitCode.USAGE
        )
    check_can_write("--out", out.absolute().parent)
    check_folder("--tables", tables)
    log = find_log(path, server, server_config)
    ends = read_end_offsets_file(end_offsets)
    progress = Progress(is_quiet=quiet)
    looked_at = None if _may_have_tables(log) else log
    with running_spark(master, looked_at, progress, "tables") as spark:
        from pipeline.report.report_job import ReportOptions, write_report

        options = ReportOptions(
            top, tuple(groups or ()), int(retention_minutes * _MINUTE_MS), has_audit
        )
        made = write_report(
            spark,
            log,
            out,
            options,
            compute_version(),
            tables=tables,
            end_offsets=ends,
            tell=progress.tell,
            say=lambda step: begin_step(progress, spark, step),
        )
    for name in made.unknown_groups:
        progress.say(f"{name}: no member owned a partition")
    for line in show_problems(dict(made.facts.problems)):
        progress.say(line)
    progress.say(f"{made.facts.records} records, {made.series.total} rebalances: {out}")


def _may_have_tables(path: str) -> bool:
    """Whether a run of ``tables`` has finished at a path; only Spark can tell of other systems."""
    from pipeline.source.errors import NotALog
    from pipeline.source.logs.paths import find_path, is_of_other_system
    from pipeline.tables.writing import MANIFEST

    if is_of_other_system(path):
        return True
    try:
        return (find_path(path) / MANIFEST).is_file()
    except NotALog:
        return False
