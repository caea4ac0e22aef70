"""A file of partition weights: as in the config, or as `muster config weigh -o csv` prints them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from cli.errors import CommandError, ExitCode
from model.configs.assignor_configs import parse_weights

HEADER: Final = ["TOPIC", "PARTITION", "WEIGHT"]


def read_weights(path: Path) -> list[str]:
    """The entries of the file. Raises ``CommandError`` if it cannot be read or is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", ExitCode.USAGE) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not text", ExitCode.USAGE) from error
    try:
        entries = _find_entries(text)
        parse_weights(entries)
    except ValueError as error:
        raise CommandError(f"{path}: {error}", ExitCode.USAGE) from error
    return entries


def _find_entries(text: str) -> list[str]:
    """The entries, one a line or between commas; `#` begins a comment."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    rows = list(csv.reader(line for line in lines if line))
    if rows and rows[0] == HEADER:
        return [_render_row(row) for row in rows[1:]]
    return [entry.strip() for row in rows for entry in row if entry.strip()]


def _render_row(row: list[str]) -> str:
    if len(row) != len(HEADER):
        raise ValueError(f"{','.join(row)} is not topic,partition,weight")
    topic, partition, weight = row
    return f"{topic}:{partition}={weight}"
