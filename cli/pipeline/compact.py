"""`muster pipeline compact`: reduce Kafka segments to sorted files of current records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.log.import_command import AbortOpenOption, CutTornTailOption, PartitionsOption
from cli.options import OutputOption, QuietOption
from cli.output import Format, Listing, print_listing, print_note
from cli.pipeline.log_options import check_can_write, check_folder
from cli.pipeline.spark import (
    MasterOption,
    begin_step,
    check_spark,
    running_spark,
)
from cli.progress import Progress

if TYPE_CHECKING:
    from pipeline.bulk.bulk_options import BulkOptions
    from storage.transfer.bulk import Bulk

CompactPathOption = Annotated[
    str,
    typer.Option(
        "--path",
        metavar="PATH",
        help="A folder of __consumer_offsets-N folders, one of these, or one .log.",
    ),
]


def compact(
    *,
    path: CompactPathOption,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FOLDER", help="Output folder, an input of import."),
    ],
    partitions: PartitionsOption = None,
    abort_open: AbortOpenOption = False,
    cut_torn_tail: CutTornTailOption = False,
    master: MasterOption = None,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Write sorted files of the last record of each key, which a new store loads unchanged."""
    from pipeline.bulk.bulk_options import BulkOptions

    check_folder("--out", out)
    # It is written beside the folder, whose place it then takes.
    check_can_write("--out", out.absolute().parent)
    options = BulkOptions(True, partitions, abort_open, cut_torn_tail)
    bulk = make_bulk(path, out, options, master, Progress(is_quiet=quiet))
    if not quiet:
        for note in bulk.notes:
            print_note(note)
        print_listing(_compute_listing(path, out, bulk), output)


def make_bulk(
    path: str, out: Path, options: BulkOptions, master: str | None, progress: Progress
) -> Bulk:
    """Fold the log with Spark. Raises ``CommandError``."""
    check_spark()
    from storage.transfer.import_refused import ImportRefused

    with running_spark(master, path, progress, "log") as spark:
        from pipeline.bulk import bulk_job

        def say(step: str) -> None:
            begin_step(progress, spark, step)

        try:
            return bulk_job.make_bulk(spark, path, out, options, say)
        except ImportRefused as error:
            raise CommandError(str(error), ExitCode.PRECONDITION) from error
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error}") from error


def _compute_listing(path: str, out: Path, bulk: Bulk) -> Listing:
    kept = sum(part.records for part in bulk.partitions)
    waiting = {producer for part in bulk.partitions for producer in part.open_producers}
    rows = [
        ("partitions", bulk.partition_count),
        ("batches read", bulk.batches),
        ("records read", bulk.records),
        ("records kept", kept),
        ("files", sum(map(len, bulk.files.values()))),
        ("open transactions", len(waiting)),
    ]
    content = {
        "path": path,
        "out": str(out),
        **{name.replace(" ", "_"): count for name, count in rows},
        "open_producer_ids": sorted(waiting),
        "notes": list(bulk.notes),
    }
    return Listing("pipeline.compact", ("WHAT", "COUNT"), rows, content, "notes")
