"""`muster log import`: import Kafka segments into a store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from cli.log.log_sources import source_errors
from cli.options import DEFAULT_TIMEOUT, OutputOption, QuietOption, TimeoutOption
from cli.output import Format, print_listing, print_note
from cli.progress import Progress

if TYPE_CHECKING:
    from cli.log.import_summary import StoreSummary
    from cli.log.known_topics import KnownTopics
    from storage.log_store import LogStore
    from storage.segments.folder import SegmentFolder
    from storage.transfer.import_log import ImportCount
    from storage.transfer.import_side import SideImport

DataDirOption = Annotated[
    Path, typer.Option("--data-dir", metavar="STORE", help="Muster's data folder.")
]


FolderArgument = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="A broker's log folder, with __consumer_offsets-N folders."),
]
TopicsOption = Annotated[
    Path | None,
    typer.Option("--topics", metavar="FILE", help="Topics: name, id and partitions, YAML or JSON."),
]
BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server", metavar="HOST:PORT", help="Read the topics from this cluster."
    ),
]
CommandConfigOption = Annotated[
    Path | None,
    typer.Option("--command-config", metavar="FILE", help="librdkafka settings for that cluster."),
]
PartitionsOption = Annotated[
    int | None,
    typer.Option("--partitions", min=1, help="Number of partitions of the imported topic."),
]
AbortOpenOption = Annotated[bool, typer.Option("--abort-open", help="Abort open transactions.")]
KeepClockOption = Annotated[
    bool,
    typer.Option(
        "--keep-clock",
        help="Offsets expire by their commit time, as in Kafka, instead of by the import time.",
    ),
]
CutTornTailOption = Annotated[
    bool, typer.Option("--cut-torn-tail", help="Ignore an incomplete last batch.")
]


def import_log(
    *,
    folder: FolderArgument,
    data_dir: DataDirOption,
    topics: TopicsOption = None,
    bootstrap_server: BootstrapOption = None,
    command_config: CommandConfigOption = None,
    partitions: PartitionsOption = None,
    abort_open: AbortOpenOption = False,
    keep_clock: KeepClockOption = False,
    cut_torn_tail: CutTornTailOption = False,
    output: OutputOption = Format.TABLE,
    quiet: QuietOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Import a __consumer_offsets log into a store: all of it, or nothing.

    The store must have no groups, and its server must not be running.
    """
    from storage.segments.folder import open_segments
    from storage.transfer.import_log import ImportOptions, import_segments
    from storage.transfer.import_refused import ImportRefused

    known = find_topics(topics, bootstrap_server, command_config, timeout)
    with source_errors(), Progress(is_quiet=quiet) as progress:
        source = open_segments(folder)
        side = compute_side(folder, known, keep_clock=keep_clock)
        total = _count_bytes(source)
        progress.begin("log is read")
        options = ImportOptions(
            *(partitions, abort_open, cut_torn_tail, side),
            tell=lambda read: progress.count(read, total, "bytes"),
        )
        data_folder, is_new = DataFolder(data_dir), not data_dir.exists()
        data_folder.prepare(is_filled=True)
        try:
            count, summary = import_segments(
                source, data_folder.store, options, lambda store: load_groups(store, progress)
            )
        except ImportRefused as error:
            raise CommandError(str(error), ExitCode.PRECONDITION) from error
        finally:
            if is_new and not any(data_dir.iterdir()):
                data_dir.rmdir()
    if not quiet:
        print_import(count, summary, output)


def _count_bytes(source: SegmentFolder) -> int:
    return sum(file.path.stat().st_size for files in source.segments.values() for file in files)


def load_groups(store: LogStore, progress: Progress) -> StoreSummary:
    """The last step of an import: load the new store once, as a server does."""
    from cli.log.import_summary import summarize_store

    progress.begin("groups are loaded")
    return summarize_store(store)


def print_import(count: ImportCount, summary: StoreSummary, output: Format) -> None:
    """Print what was imported, and what to do next."""
    from cli.log.import_summary import compute_import_listing

    for note in count.notes:
        print_note(note)
    if summary.missing_topics or summary.missing_ids:
        print_note(
            "Some topics of the log are unknown, and their groups wait for them: name them with "
            "--topics or --bootstrap-server, or create them"
        )
    print_listing(compute_import_listing(count, summary), output)


def find_topics(
    file: Path | None, bootstrap: str | None, config: Path | None, timeout: float
) -> KnownTopics:
    """The topics in a file or on a cluster, or none."""
    if file is not None and bootstrap is not None:
        raise CommandError("give either --topics or --bootstrap-server", ExitCode.USAGE)
    if file is not None:
        from cli.log.known_topics import read_known_topics

        return read_known_topics(file)
    if bootstrap is not None:
        from cli.log.cluster import Cluster

        return Cluster(bootstrap, config, timeout).list_topics()
    return {}


def compute_side(folder: Path, known: KnownTopics, *, keep_clock: bool) -> SideImport:
    """The side records of the import: topics, import time, and those of an export's side file."""
    from storage.transfer.export_log import SIDE_FILE, decode_side_file
    from storage.transfer.import_side import SideImport

    now_ms = None if keep_clock else time.time_ns() // 1_000_000
    file = folder / SIDE_FILE
    if not file.is_file():
        return SideImport(known, now_ms)
    cluster_id, records = decode_side_file(file.read_bytes())
    return SideImport(known, now_ms, records, cluster_id)
