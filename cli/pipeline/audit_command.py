"""`muster pipeline audit`: check a complete log against the invariants of groups."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli.errors import CommandError
from cli.options import OutputOption, QuietOption
from cli.output import Format, Listing, print_listing
from cli.pipeline.log_options import (
    PathOption,
    ServerConfigOption,
    ServerOption,
    check_folder,
    find_log,
)
from cli.pipeline.spark import (
    FormatOption,
    MasterOption,
    check_format,
    check_spark,
    running_spark,
    show_problems,
)
from cli.progress import Progress

_MINUTE_MS = 60 * 1000


def audit(
    *,
    path: PathOption = None,
    server: ServerOption = None,
    server_config: ServerConfigOption = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FOLDER", help="Also write the findings as tables."),
    ] = None,
    retention_minutes: Annotated[
        float,
        typer.Option("--offsets-retention-minutes", help="offsets.retention.minutes of the log."),
    ] = 10_080,
    file_format: FormatOption = "parquet",
    master: MasterOption = None,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Look for violations of S1, S3, S5, S6, S7, S18, S19 and S21; exits 1 if there are any."""
    check_spark()
    check_format(file_format)
    check_folder("--out", out)
    log = find_log(path, server, server_config)
    progress = Progress(is_quiet=quiet)
    with running_spark(master, log, progress, "audit") as spark:
        from pipeline.audit.audit_job import audit_records, show_violation
        from pipeline.tables.record_table import read_records

        records = read_records(spark, log)
        found = audit_records(
            records,
            int(retention_minutes * _MINUTE_MS),
            out=out,
            file_format=file_format,
            tell=progress.tell,
        )
    progress.say(f"{found.records} records of {found.groups} groups, including deleted groups")
    for explanation, count in sorted(found.deletions.items()):
        progress.say(f"offsets deleted, {explanation}: {count}")
    for line in show_problems(found.problems):
        progress.say(line)
    for damage in found.damages:
        where = f"partition {damage.log_partition}, offset {damage.offset}"
        progress.say(f"{where}: {damage.problem}: {damage.detail or 'invalid'}")
    rows = [(v.rule, v.log_partition, v.offset, v.group_id, v.detail) for v in found.violations]
    content = {
        "path": server or log,
        "records": found.records,
        "groups": found.groups,
        "counts": found.counts,
        "deletions": found.deletions,
        "problems": found.problems,
        "damages": [damage._asdict() for damage in found.damages],
        "violations": [asdict(violation) for violation in found.violations],
    }
    columns = ("RULE", "PARTITION", "OFFSET", "GROUP", "DETAIL")
    if output is Format.WIDE:
        for violation in found.violations:
            print(show_violation(violation))
    elif rows or output is not Format.TABLE:
        print_listing(Listing("pipeline.audit", columns, rows, content, "violations"), output)
    if not found.is_clean:
        raise CommandError(found.verdict())
