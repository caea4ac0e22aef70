"""`muster pipeline tables`: write all tables of a log as folders of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.log.import_command import CommandConfigOption
from cli.options import DEFAULT_TIMEOUT, OutputOption, QuietOption, TimeoutOption
from cli.output import Format, Listing, print_listing
from cli.pipeline.cluster_end_offsets import find_end_offsets
from cli.pipeline.log_options import (
    PathOption,
    ServerConfigOption,
    ServerOption,
    check_folder,
    find_log,
    read_end_offsets_file,
)
from cli.pipeline.spark import (
    FormatOption,
    MasterOption,
    check_format,
    check_spark,
    noticing_interrupts,
    running_spark,
    show_problems,
)
from cli.progress import Progress

if TYPE_CHECKING:
    from pipeline.running import SparkSession
    from pipeline.tables.end_offsets_file import EndOffset
    from pipeline.tables.tables_job import TablesSummary
    from pipeline.tables.tables_stream import StreamOptions

OutOption = Annotated[
    str, typer.Option("--out", metavar="FOLDER", help="Output folder, with a folder per table.")
]
EndOffsetsOption = Annotated[
    Path | None,
    typer.Option(
        "--end-offsets",
        metavar="FILE",
        help="End offsets, for lag: JSON lines with topic, partition, end_offset and ts.",
    ),
]
BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="Read end offsets, for lag, from this cluster.",
    ),
]
LagHoursOption = Annotated[
    float, typer.Option("--lag-hours", min=0, help="How far back to read that cluster's offsets.")
]
StreamOption = Annotated[
    bool, typer.Option("--stream", help="Continue after the last run with --stream, to the end.")
]
FollowOption = Annotated[
    bool,
    typer.Option("--follow", help="Like --stream, then follow the log until interrupted."),
]
TriggerOption = Annotated[
    float,
    typer.Option(
        "--trigger-seconds", min=0.1, help="With --follow: how often to look for records."
    ),
]
RefreshOption = Annotated[
    float | None,
    typer.Option(
        "--refresh-seconds",
        min=1,
        help="With --follow: how often to rewrite the tables other than records; they are always "
        "rewritten at the end.",
    ),
]
MaxOffsetsOption = Annotated[
    int | None,
    typer.Option(
        "--max-offsets-per-trigger", min=1, help="With --stream: maximum offsets at a time."
    ),
]


def tables(
    *,
    path: PathOption = None,
    server: ServerOption = None,
    server_config: ServerConfigOption = None,
    out: OutOption,
    file_format: FormatOption = "parquet",
    end_offsets: EndOffsetsOption = None,
    bootstrap_server: BootstrapOption = None,
    command_config: CommandConfigOption = None,
    lag_hours: LagHoursOption = 24.0,
    is_stream: StreamOption = False,
    follow: FollowOption = False,
    trigger_s: TriggerOption = 5.0,
    refresh_s: RefreshOption = None,
    max_offsets: MaxOffsetsOption = None,
    master: MasterOption = None,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Write all tables of a log; each atomically replaces that of a previous run."""
    check_spark()
    check_format(file_format)
    check_folder("--out", out)
    log = find_log(path, server, server_config)
    known = read_end_offsets_file(end_offsets)

    def find_ends() -> list[EndOffset]:
        if bootstrap_server is None:
            return known
        now = datetime.now(UTC)
        asked = find_end_offsets(bootstrap_server, command_config, timeout, lag_hours, now)
        return [*known, *asked]

    progress = Progress(is_quiet=quiet)
    with running_spark(master, log, progress, "tables") as spark:
        from pipeline.source.slice_reading import find_notes
        from pipeline.tables.tables_stream import StreamOptions

        options = StreamOptions(
            trigger_s if follow else None,
            refresh_s,
            max_offsets,
            file_format,
            find_ends if end_offsets is not None or bootstrap_server is not None else None,
        )
        run = _run_stream if is_stream or follow else _run_batch
        summary = run(spark, log, out, options, progress.tell)
        notes = find_notes(log)
    for line in (*notes, *show_problems(summary.problems)):
        progress.say(line)
    print_listing(_compute_listing(server or log, out, summary, notes), output)


def _run_stream(
    spark: SparkSession,
    path: str,
    out: str,
    options: StreamOptions,
    tell: Callable[[str, int], None],
) -> TablesSummary:
    from pipeline.tables.tables_stream import stream_tables

    with noticing_interrupts() as is_interrupted:
        return stream_tables(spark, path, out, options, tell, is_interrupted)


def _run_batch(
    spark: SparkSession,
    path: str,
    out: str,
    options: StreamOptions,
    tell: Callable[[str, int], None],
) -> TablesSummary:
    from pipeline.tables.tables_job import write_tables

    return write_tables(
        spark,
        path,
        out,
        file_format=options.file_format,
        end_offsets=[] if options.find_ends is None else options.find_ends(),
        tell=tell,
    )


def _compute_listing(path: str, out: str, summary: TablesSummary, notes: Sequence[str]) -> Listing:
    found = [{"table": name, "rows": rows} for name, rows in summary.rows.items()]
    content = {
        "path": path,
        "out": out,
        "tables": found,
        "problems": summary.problems,
        "notes": list(notes),
    }
    rows = [(row["table"], row["rows"]) for row in found]
    return Listing("pipeline.tables", ("TABLE", "ROWS"), rows, content, "tables")
