"""Partition weights: as in the config, or as `muster config weigh -o csv` prints them."""

from __future__ import annotations

import csv
from typing import Final

from model.configs.assignor_configs import parse_weights
from wording.errors import InputError

HEADER: Final = ["TOPIC", "PARTITION", "WEIGHT"]


def parse_weight_entries(name: str, text: str) -> list[str]:
    """The entries in a text, which is called ``name`` in errors. Raises ``InputError``."""
    try:
        entries = _find_entries(text)
        parse_weights(entries)
    except (ValueError, csv.Error) as error:
        raise InputError(f"{name}: {error}") from error
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
