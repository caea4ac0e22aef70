"""`muster log dump`: print every record of a log, raw and decoded."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import CommandError, ExitCode
from cli.log.log_sources import LogSource, decode, open_source, read_or_report
from cli.output import Format, print_note
from model.ids import LogPartition

if TYPE_CHECKING:
    from storage.codec.record_filters import RecordFilter

_COLUMNS = (
    ("PARTITION", 9),
    ("OFFSET", 8),
    ("TIMESTAMP", 24),
    ("BASE-OFFSET", 11),
    ("PRODUCER", 10),
    ("FLAGS", 5),
    ("TYPE", 40),
)
_LAST_COLUMNS = ("KEY", "VALUE", "KEY-HEX", "VALUE-HEX")

PathArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PATH",
        help="A data folder, a folder of __consumer_offsets-N folders, one of these, or one .log.",
    ),
]


def dump(
    *,
    path: PathArgument,
    output: Annotated[
        Format,
        typer.Option("--output", "-o", metavar="table|jsonl", help="Output format."),
    ] = Format.TABLE,
    group: Annotated[
        str | None, typer.Option("--group", metavar="G", help="Only records of this group.")
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only records of this type, by name or number; `control` for markers. Repeatable.",
        ),
    ] = None,
    partitions: Annotated[
        list[int] | None,
        typer.Option("--partition", metavar="N", help="Only this partition. Repeatable."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only from this time on: ISO, ms, or 90m."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only before this time.")
    ] = None,
) -> None:
    """Print every record: partition, offset, time, batch, and key and value in hex and decoded."""
    from cli.log.record_options import parse_record_types, parse_time_option
    from storage.codec.record_filters import RecordFilter

    printer = _find_printer(output)
    wanted = RecordFilter(
        group,
        parse_record_types(types or ()),
        None if since is None else parse_time_option("--since", since, _now_ms),
        None if until is None else parse_time_option("--until", until, _now_ms),
    )
    with open_source(path) as source:
        for note in source.notes:
            print_note(note)
        chosen = _choose(source, partitions)
        damaged: list[str] = []
        try:
            printer(
                line for partition in chosen for line in _read(source, partition, wanted, damaged)
            )
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader closed the pipe. Python flushes stdout again at exit, which must not fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if damaged:
        raise CommandError("\n".join(damaged))


def _choose(source: LogSource, partitions: list[int] | None) -> list[LogPartition]:
    if partitions is None:
        return list(source.partitions)
    missing = sorted(set(partitions) - set(source.partitions))
    if missing:
        raise CommandError(f"partition {missing[0]} does not exist", ExitCode.NOT_FOUND)
    return [LogPartition(partition) for partition in sorted(set(partitions))]


def _read(
    source: LogSource, partition: LogPartition, wanted: RecordFilter, damaged: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of a partition; skip damaged batches and describe them in ``damaged``."""
    from cli.log.record_line import compute_line

    for found in read_or_report(source, partition, damaged):
        if not wanted.may_hold(found.data):
            continue
        try:
            batch = decode(found)
        except CommandError as error:
            damaged.append(error.message)
            continue
        for record in wanted.select(partition, batch):
            yield compute_line(found, batch, record)


def _find_printer(output: Format) -> Callable[[Iterator[dict[str, Any]]], None]:
    match output:
        case Format.TABLE:
            return _print_table
        case Format.JSONL:
            return _print_lines
        case _:
            raise CommandError("a dump can be printed with -o table or -o jsonl", ExitCode.USAGE)


def _print_lines(lines: Iterator[dict[str, Any]]) -> None:
    for line in lines:
        sys.stdout.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def _print_table(lines: Iterator[dict[str, Any]]) -> None:
    """Print columns of a fixed width, because the records to come are not known yet."""
    from wording.times import render_time

    names = [name.ljust(width) for name, width in _COLUMNS]
    print("  ".join((*names, *_LAST_COLUMNS)))
    for line in lines:
        producer = f"{line['producerId']}/{line['producerEpoch']}"
        flags = ("T" if line["isTransactional"] else "") + ("C" if line["isControl"] else "")
        cells = (
            line["partition"],
            line["offset"],
            render_time(line["timestamp"]),
            line["baseOffset"],
            producer if line["producerId"] >= 0 else "-",
            flags or "-",
            line["type"],
        )
        shown = [
            str(cell).rjust(width) if isinstance(cell, int) else str(cell).ljust(width)
            for cell, (_, width) in zip(cells, _COLUMNS, strict=True)
        ]
        print("  ".join((*shown, *_render_content(line))))


def _render_content(line: dict[str, Any]) -> tuple[str, str, str, str]:
    value = "null" if line["value"] is None else _render_json(line, "value")
    return _render_json(line, "key"), value, line["key"] or "-", line["value"] or "-"


def _render_json(line: dict[str, Any], part: str) -> str:
    content = line.get(f"{part}Json")
    if content is not None:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return f"({line[f'{part}Error']})" if f"{part}Error" in line else "-"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
