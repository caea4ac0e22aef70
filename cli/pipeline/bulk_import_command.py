"""`muster pipeline import`: import a log that is too large for one process into a new store."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from cli.log.import_command import (
    AbortOpenOption,
    BootstrapOption,
    CommandConfigOption,
    CutTornTailOption,
    DataDirOption,
    KeepClockOption,
    PartitionsOption,
    TopicsOption,
    compute_side,
    find_topics,
    load_groups,
    print_import,
)
from cli.log.log_sources import source_errors
from cli.options import DEFAULT_TIMEOUT, OutputOption, QuietOption, TimeoutOption
from cli.output import Format
from cli.pipeline.compact import make_bulk
from cli.pipeline.spark import MasterOption
from cli.progress import Progress

if TYPE_CHECKING:
    from cli.log.import_summary import StoreSummary
    from storage.transfer.bulk import Bulk
    from storage.transfer.import_log import ImportCount
    from storage.transfer.import_side import SideImport


def import_bulk(
    *,
    path: Annotated[
        str,
        typer.Option(
            "--path", metavar="PATH", help="Kafka segments, or a folder that compact has written."
        ),
    ],
    data_dir: DataDirOption,
    work: Annotated[
        Path | None,
        typer.Option(
            "--work",
            metavar="FOLDER",
            help="Folder for Spark's intermediate files, deleted at the end; beside the store by "
            "default. Every executor must be able to see it.",
        ),
    ] = None,
    topics: TopicsOption = None,
    bootstrap_server: BootstrapOption = None,
    command_config: CommandConfigOption = None,
    partitions: PartitionsOption = None,
    abort_open: AbortOpenOption = False,
    keep_clock: KeepClockOption = False,
    cut_torn_tail: CutTornTailOption = False,
    master: MasterOption = None,
    output: OutputOption = Format.TABLE,
    quiet: QuietOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Import a __consumer_offsets log with Spark, with the same result as muster log import.

    The data folder must be new or have no groups, and its server must not be running. Segments are
    imported with their whole history, a folder of compact only with its current records.
    """
    from pipeline.bulk.bulk_options import BulkOptions
    from pipeline.source.errors import NotALog
    from pipeline.source.logs.paths import find_path
    from storage.transfer.bulk import is_bulk, read_bulk

    known = find_topics(topics, bootstrap_server, command_config, timeout)
    try:
        folder = find_path(path)
    except NotALog as error:
        raise CommandError(str(error), ExitCode.NOT_FOUND) from error
    with source_errors():
        side = compute_side(folder, known, keep_clock=keep_clock)
        if is_bulk(folder):
            if partitions is not None or abort_open or cut_torn_tail:
                raise CommandError(
                    "--partitions, --abort-open and --cut-torn-tail are options of compact, "
                    f"which wrote {path}",
                    ExitCode.USAGE,
                )
            bulk = read_bulk(folder)
            count, summary = _fill(bulk, folder, data_dir, side, quiet, is_moved=False)
        else:
            options = BulkOptions(False, partitions, abort_open, cut_torn_tail)
            target = work or data_dir.with_name(f"{data_dir.name}.bulk")
            _check_places(data_dir, work)
            try:
                bulk = make_bulk(path, target, options, master, Progress(is_quiet=quiet))
                count, summary = _fill(bulk, target, data_dir, side, quiet, is_moved=True)
            finally:
                if is_bulk(target):
                    shutil.rmtree(target, ignore_errors=True)
    if not quiet:
        print_import(count, summary, output)


def _check_places(data_dir: Path, work: Path | None) -> None:
    """Raise ``CommandError`` for errors that would otherwise show only after all the work."""
    from cli.pipeline.log_options import check_can_write
    from storage.transfer.import_bulk import check_is_empty
    from storage.transfer.import_refused import ImportRefused

    if work is not None and work.exists() and any(work.iterdir()):
        raise CommandError(
            f"{work} is not empty: --work must be a new folder", ExitCode.PRECONDITION
        )
    check_can_write("--data-dir", data_dir.absolute().parent)
    if work is not None:
        check_can_write("--work", work.absolute().parent)
    try:
        check_is_empty(DataFolder(data_dir).store)
    except ImportRefused as error:
        raise CommandError(str(error), ExitCode.PRECONDITION) from error


def _fill(
    bulk: Bulk, folder: Path, data_dir: Path, side: SideImport, quiet: bool, *, is_moved: bool
) -> tuple[ImportCount, StoreSummary]:
    from storage.transfer import import_bulk as filling
    from storage.transfer.import_refused import ImportRefused

    data_folder, is_new = DataFolder(data_dir), not data_dir.exists()
    data_folder.prepare(is_filled=True)
    try:
        with Progress(is_quiet=quiet) as progress:
            progress.begin("files are taken")
            return filling.import_bulk(
                bulk,
                folder,
                data_folder.store,
                side,
                lambda store: load_groups(store, progress),
                is_moved=is_moved,
            )
    except ImportRefused as error:
        raise CommandError(str(error), ExitCode.PRECONDITION) from error
    finally:
        if is_new and not any(data_dir.iterdir()):
            data_dir.rmdir()
