"""Access to the golden records and segments of a real Kafka."""

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
    """Every record of the broker's log as Kafka decoded it, without markers."""
    return tuple(line for line in golden_lines() if not line["isControl"])


@cache
def golden_lines() -> tuple[dict[str, Any], ...]:
    """Every record of the broker's log, including markers."""
    return tuple(_read("decoded/records.jsonl.gz"))


@cache
def control_records() -> tuple[dict[str, Any], ...]:
    """The transaction markers of the broker's log."""
    return tuple(line for line in _read("decoded/records.jsonl.gz") if line["isControl"])


@cache
def filled_records() -> tuple[dict[str, Any], ...]:
    """Records of every type and version, with values that rarely occur in a log."""
    return tuple(_read("vectors/coordinator_records.jsonl.gz"))


def golden_records() -> tuple[dict[str, Any], ...]:
    """Logged and filled records; ``key``, ``value`` and their JSON have one format."""
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
