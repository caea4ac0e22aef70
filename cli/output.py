"""Prints results: tables with Kafka's columns for people, complete responses for programs.

Data goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TextIO

ENVELOPE_VERSION = 1


class Format(StrEnum):
    """Output formats."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of a command.

    ``columns`` and ``rows`` are for tables and CSV; the last ``wide_columns`` columns appear only
    in wide tables and CSV. ``content`` is for JSON and YAML; ``items`` names the list in it whose
    entries are the lines of JSON lines.
    """

    command: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    content: Mapping[str, Any]
    items: str
    wide_columns: int = 0
    preface: Sequence[str] = field(default=())


def print_listing(listing: Listing, form: Format) -> None:
    """Print a listing in the given format."""
    match form:
        case Format.TABLE | Format.WIDE:
            for line in listing.preface:
                print(make_printable(line))
            kept = len(listing.columns)
            if form is Format.TABLE:
                kept -= listing.wide_columns
            print_table(listing.columns[:kept], [row[:kept] for row in listing.rows])
        case Format.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(listing.columns)
            writer.writerows(listing.rows)
        case Format.JSON:
            print(render_json(compute_envelope(listing), indent=2))
        case Format.JSONL:
            for item in listing.content[listing.items]:
                print(render_json(item))
        case Format.YAML:
            import yaml

            print(yaml.safe_dump(compute_envelope(listing), sort_keys=False), end="")


def compute_envelope(listing: Listing) -> dict[str, Any]:
    """The content with the command's name and the version of this format."""
    return {"_command": listing.command, "_version": ENVELOPE_VERSION, **listing.content}


def render_json(content: Any, indent: int | None = None) -> str:
    """JSON in which names stay readable, with escapes for what ``make_printable`` escapes."""
    lines = json.dumps(content, indent=indent, ensure_ascii=False).split("\n")
    return "\n".join(line if line.isprintable() else _escape_in_json(line) for line in lines)


def _escape_in_json(line: str) -> str:
    return "".join(each if each.isprintable() else _escape_sign(each) for each in line)


def _escape_sign(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], file: TextIO | None = None
) -> None:
    """Print columns two blanks apart, numbers aligned right."""
    cells = [[_show(value) for value in row] for row in rows]
    numeric = [
        bool(rows) and all(isinstance(row[index], int) for row in rows)
        for index in range(len(columns))
    ]
    widths = [
        max(len(columns[index]), *(len(row[index]) for row in cells), 0)
        for index in range(len(columns))
    ]
    for line in [list(columns), *cells]:
        shown = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        print("  ".join(shown).rstrip(), file=file)


def print_note(text: str) -> None:
    """Print a line that is not data. It is one line, also if a name in it has several."""
    print(make_printable(text), file=sys.stderr)


def make_printable(text: str) -> str:
    """The text, with escapes for what could move the cursor, begin a line or hide a character.

    Clients choose the names of groups and members, and whoever administers them reads these on a
    terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def _show(value: object) -> str:
    return "-" if value is None or value == "" else make_printable(str(value))
