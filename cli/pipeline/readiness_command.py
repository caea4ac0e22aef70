"""`muster pipeline readiness`: which classic groups can be migrated, and what prevents it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import CommandError, ExitCode
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
    show_time,
)
from cli.progress import Progress

if TYPE_CHECKING:
    from translator.readiness import MigrationRules

_COLUMNS = ("GROUP", "VERDICT", "MEMBERS", "PROTOCOL", "REASONS", "CLIENTS-FIRST")


def readiness(
    *,
    path: PathOption = None,
    server: ServerOption = None,
    server_config: ServerConfigOption = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FOLDER", help="Also write the result as a table."),
    ] = None,
    max_size: Annotated[
        int | None,
        typer.Option("--max-size", min=1, help="group.consumer.max.size; unlimited by default."),
    ] = None,
    session_timeout_ms: Annotated[
        int,
        typer.Option(
            "--session-timeout-ms",
            min=1,
            help="group.consumer.session.timeout.ms, which will apply to all members.",
        ),
    ] = 45_000,
    patterns: Annotated[
        list[str] | None,
        typer.Option(
            "--pattern",
            metavar="CLIENT-ID=REGEX",
            help="The regular expression of a client's subscription, which no record has. "
            "Repeatable.",
        ),
    ] = None,
    file_format: FormatOption = "parquet",
    master: MasterOption = None,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Print each classic group as READY, WARN or BLOCKED, why, and the clients to change first."""
    check_spark()
    check_format(file_format)
    check_folder("--out", out)
    log = find_log(path, server, server_config)
    rules = _make_rules(max_size, session_timeout_ms, patterns or [])
    progress = Progress(is_quiet=quiet)
    with running_spark(master, log, progress, "readiness") as spark:
        from pipeline.audit.migration_verdicts import compute_readiness
        from pipeline.tables.record_table import read_records
        from pipeline.tables.writing import TableFolder

        table = compute_readiness(read_records(spark, log), rules).persist()
        if out is not None:
            folder = TableFolder(spark, out, file_format)
            folder.recover()
            progress.tell("readiness", folder.write("readiness", table))
        found = [row.asDict(recursive=True) for row in table.orderBy("group_id").collect()]
    for verdict, count in sorted(Counter(row["verdict"] for row in found).items()):
        progress.say(f"{verdict}: {count}")
    content = {"path": server or log, "groups": [{**row, "ts": _show_ts(row)} for row in found]}
    rows = [_show_row(row) for row in found]
    print_listing(Listing("pipeline.readiness", _COLUMNS, rows, content, "groups"), output)


def _make_rules(
    max_size: int | None, session_timeout_ms: int, patterns: list[str]
) -> MigrationRules:
    from translator.readiness import UNLIMITED, MigrationRules

    by_client: dict[str, str] = {}
    for text in patterns:
        client_id, separator, regex = text.partition("=")
        if not separator:
            raise CommandError(f"--pattern must be CLIENT-ID=REGEX, not {text}", ExitCode.USAGE)
        by_client[client_id] = regex
    return MigrationRules(True, max_size or UNLIMITED, session_timeout_ms, by_client)


def _show_row(row: dict[str, Any]) -> tuple[object, ...]:
    hindrances = Counter(reason["hindrance"] for reason in row["reasons"])
    reasons = ", ".join(
        name if count == 1 else f"{name} x{count}" for name, count in hindrances.items()
    )
    return (
        row["group_id"],
        row["verdict"],
        row["members"],
        row["protocol"] or row["protocol_type"],
        reasons,
        " ".join(row["clients_to_change"]),
    )


def _show_ts(row: dict[str, Any]) -> str | None:
    return show_time(row["ts"])
