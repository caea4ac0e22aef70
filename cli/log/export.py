"""`muster log export`: write a store as segments that a Kafka broker can start from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.log.import_command import DataDirOption
from cli.log.log_sources import find_store, source_errors
from cli.options import OutputOption, QuietOption
from cli.output import Format, Listing, print_listing, print_note

_SIDE_NAMES = {
    1: "topics",
    2: "producer id blocks",
    3: "topic deletions",
    4: "import graces",
    5: "group configs",
    6: "producers",
}


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="New folder for the __consumer_offsets-N folders.")
    ],
    data_dir: DataDirOption,
    history: Annotated[
        bool, typer.Option("--history", help="Export the complete log, not only current records.")
    ] = False,
    with_side: Annotated[
        bool,
        typer.Option(
            "--with-side", help="Also write a file with what Kafka's records cannot hold."
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

    store = find_store(data_dir)
    if store is None:
        raise CommandError(f"{data_dir} holds no Muster store", ExitCode.NOT_FOUND)
    with source_errors():
        reader = open_store_reader(store)
        try:
            side = Counter(
                _SIDE_NAMES.get(key[0], f"records of kind {key[0]}") for key, _ in reader.side()
            )
            count = export_segments(reader, folder, is_whole=history, with_side=with_side)
        finally:
            reader.close()
    if quiet:
        return
    if side and not with_side:
        left_out = ", ".join(f"{number} {name}" for name, number in sorted(side.items()))
        print_note(f"not exported, because Kafka has no records for it: {left_out} (--with-side)")
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
        "left_out": [] if with_side else sorted(side),
    }
    print_listing(Listing("log.export", ("WHAT", "COUNT"), rows, content, "left_out"), output)
