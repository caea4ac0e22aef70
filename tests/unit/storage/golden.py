"""The golden records and segments, as the tests of the log read them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[2] / "golden"
TYPES = (*range(9), *range(10, 18), *range(19, 24))
"""All record types that Kafka 4.3 has."""


@cache
def logged_records() -> tuple[dict[str, Any], ...]:
    """Every record of the broker's log, markers left out, as Kafka decoded it."""
    return tuple(line for line in golden_lines() if not line["isControl"])


@cache
def golden_lines() -> tuple[dict[str, Any], ...]:
    """Every record of the broker's log, markers and all."""
    return tuple(_read("decoded/records.jsonl.gz"))


@cache
def control_records() -> tuple[dict[str, Any], ...]:
    """The markers that end transactions."""
    return tuple(line for line in _read("decoded/records.jsonl.gz") if line["isControl"])


@cache
def filled_records() -> tuple[dict[str, Any], ...]:
    """Every type and version, filled with values that a log seldom has."""
    return tuple(_read("vectors/coordinator_records.jsonl.gz"))


def golden_records() -> tuple[dict[str, Any], ...]:
    """All of them; ``key``, ``value`` and their JSON mean the same in both."""
    return logged_records() + filled_records()


@cache
def golden_batches() -> tuple[dict[str, Any], ...]:
    """Every batch of the broker's log, as Kafka describes it."""
    return tuple(_read("decoded/batches.jsonl.gz"))


def segments() -> dict[int, bytes]:
    """The segment files by partition."""
    files = (GOLDEN / "segments").glob("*/*.log")
    return {int(file.parent.name.rpartition("-")[2]): file.read_bytes() for file in sorted(files)}


def _read(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(GOLDEN / name, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
