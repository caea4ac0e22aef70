"""`muster pipeline tables`: every table of a log, as folders of files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.options import OutputOption, QuietOption
from cli.output import Format, Listing, print_listing
from cli.pipeline.spark import (
    DEFAULT_MASTER,
    FormatOption,
    MasterOption,
    PathOption,
    Progress,
    check_format,
    check_spark,
    noticing_interrupts,
    running_spark,
    show_problems,
)


def tables(
    path: PathOption,
    out: Annotated[
        str, typer.Option("--out", metavar="FOLDER", help="Where the tables go, a folder each.")
    ],
    file_format: FormatOption = "parquet",
    end_offsets: Annotated[
        Path | None,
        typer.Option(
            "--end-offsets",
            metavar="FILE",
            help="End offsets, for lag: JSON lines with topic, partition, end_offset and ts.",
        ),
    ] = None,
    is_stream: Annotated[
        bool,
        typer.Option("--stream", help="Go on where the last run with --stream was, to the end."),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="As --stream, and then with what comes, until interrupted."),
    ] = False,
    trigger_s: Annotated[
        float,
        typer.Option("--trigger-seconds", min=0.1, help="--follow: how often to look for more."),
    ] = 5.0,
    refresh_s: Annotated[
        float | None,
        typer.Option(
            "--refresh-seconds",
            min=1,
            help="How often tables other than records are made while --follow goes on; they are "
            "in the end.",
        ),
    ] = None,
    max_offsets: Annotated[
        int | None,
        typer.Option("--max-offsets-per-trigger", min=1, help="How much at once with --stream."),
    ] = None,
    master: MasterOption = DEFAULT_MASTER,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Write all tables of a log; those of a run before are replaced, each at once."""
    check_spark()
    check_format(file_format)
    from pipeline.tables.end_offsets import EndOffset, EndOffsetsError, read_end_offsets

    ends: list[EndOffset] = []
    if end_offsets is not None:
        try:
            ends = read_end_offsets(end_offsets, datetime.now(UTC))
        except EndOffsetsError as error:
            raise CommandError(str(error), ExitCode.USAGE) from error
    progress = Progress(is_quiet=quiet)
    with running_spark(master) as spark:
        from pipeline.source.reading import find_notes
        from pipeline.tables.job import write_tables
        from pipeline.tables.records import read_records
        from pipeline.tables.stream import StreamOptions, stream_tables

        if is_stream or follow:
            options = StreamOptions(
                trigger_s if follow else None, refresh_s, max_offsets, file_format, ends
            )
            with noticing_interrupts() as is_interrupted:
                summary = stream_tables(spark, path, out, options, progress.tell, is_interrupted)
        else:
            records = read_records(spark, path)
            summary = write_tables(
                spark, records, out, file_format=file_format, end_offsets=ends, tell=progress.tell
            )
        notes = find_notes(path)
    for line in (*notes, *show_problems(summary.problems)):
        progress.say(line)
    found = [{"table": name, "rows": rows} for name, rows in summary.rows.items()]
    print_listing(
        Listing(
            "pipeline tables",
            ("TABLE", "ROWS"),
            [(row["table"], row["rows"]) for row in found],
            {
                "path": path,
                "out": out,
                "tables": found,
                "problems": summary.problems,
                "notes": list(notes),
            },
            "tables",
        ),
        output,
    )
