"""`muster log export`: write a store as segments that a Kafka broker can start from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.log.import_command import DataDirOption
from cli.log.log_sources import find_store, source_errors
from cli.options import OutputOption, QuietOption
from cli.output import Format, Listing, print_listing, print_note
from cli.progress import Progress

if TYPE_CHECKING:
    from storage.transfer.export_log import ExportCount

_CREDENTIALS = "SCRAM credentials"
_SECRET_KIND = 13
"""Kept beside the credentials, and not counted."""
_SIDE_NAMES = {
    1: "topics",
    2: "producer id blocks",
    3: "topic deletions",
    4: "import graces",
    5: "group configs",
    6: "producers",
    10: "ACLs",
    11: "client quotas",
    12: _CREDENTIALS,
    14: "places of groups",
}


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="New folder for the __consumer_offsets-N folders.")
    ],
    data_dir: DataDirOption,
    *,
    history: Annotated[
        bool, typer.Option("--history", help="Export the complete log, not only current records.")
    ] = False,
    with_side: Annotated[
        bool,
        typer.Option(
            "--with-side", help="Also write a file with what Kafka's records cannot hold."
        ),
    ] = False,
    with_credentials: Annotated[
        bool,
        typer.Option(
            "--with-credentials",
            help="With --with-side: the file also has the SCRAM credentials of users.",
        ),
    ] = False,
    output: OutputOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Write the log as Kafka segment files, also while the server runs.

    A Kafka broker can use them as its own __consumer_offsets.
    """
    from storage.rocks.rocks_reader import open_store_reader
    from storage.transfer.export_log import export_segments

    if with_credentials and not with_side:
        raise CommandError("--with-credentials needs --with-side", ExitCode.USAGE)
    store = find_store(data_dir)
    if store is None:
        raise CommandError(f"{data_dir} holds no Muster store", ExitCode.NOT_FOUND)
    with source_errors(), Progress(is_quiet=quiet) as progress:
        progress.begin("export")
        reader = open_store_reader(store)
        try:
            side = Counter(
                _SIDE_NAMES.get(key[0], f"records of kind {key[0]}")
                for key, _ in reader.side()
                if key[0] != _SECRET_KIND
            )
            count = export_segments(
                reader,
                folder,
                is_whole=history,
                with_side=with_side,
                with_credentials=with_credentials,
                tell=lambda done: progress.count(done, reader.partitions, "partitions"),
            )
        finally:
            reader.close()
    if quiet:
        return
    left_out = sorted(
        name for name in side if not (with_credentials if name == _CREDENTIALS else with_side)
    )
    _note_left_out(side, left_out)
    print_listing(_compute_listing(count, side, left_out), output)


def _note_left_out(side: Counter[str], left_out: Sequence[str]) -> None:
    others = ", ".join(f"{side[name]} {name}" for name in left_out if name != _CREDENTIALS)
    if others:
        print_note(f"not exported, because Kafka has no records for it: {others} (--with-side)")
    if _CREDENTIALS in left_out:
        print_note(f"not exported: {side[_CREDENTIALS]} {_CREDENTIALS} (--with-credentials)")


def _compute_listing(count: ExportCount, side: Counter[str], left_out: list[str]) -> Listing:
    rows: list[list[object]] = [
        ["partitions", count.partitions],
        ["batches", count.batches],
        ["bytes", count.bytes],
        ["open transactions", len(count.open_producers)],
    ]
    content = {
        "partitions": count.partitions,
        "batches": count.batches,
        "bytes": count.bytes,
        "open_producer_ids": sorted(count.open_producers),
        "side_records": dict(sorted(side.items())),
        "left_out": left_out,
    }
    return Listing("log.export", ("WHAT", "COUNT"), rows, content, "left_out")
