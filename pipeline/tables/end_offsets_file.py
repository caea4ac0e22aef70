"""Reads end offsets of topics from a file, for the computation of lag."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class EndOffsetsError(ValueError):
    """The file has no valid end offsets; the message says where, and what is expected."""


@dataclass(frozen=True, slots=True)
class EndOffset:
    """The end offset of a partition at a time."""

    topic: str
    partition: int
    end_offset: int
    time: datetime


def read_end_offsets(path: Path, default_time: datetime) -> list[EndOffset]:
    """End offsets from a file of JSON lines, or of one JSON object.

    A line is ``{"topic": "t", "partition": 0, "end_offset": 12, "ts": "2026-01-31T12:00:00Z"}``;
    the object is ``{"t": {"0": 12}}``. ``ts`` may also be in ms; without it, ``default_time``
    applies.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise EndOffsetsError(f"{path} cannot be read: {error}") from None
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        return list(_read_lines(path, text, default_time))
    # A topic may be named "topic".
    if isinstance(whole, dict) and not isinstance(whole.get("topic", {}), dict):
        return [_read_line(path, 1, whole, default_time)]
    return list(_read_object(path, whole, default_time))


def _read_lines(path: Path, text: str, default_time: datetime) -> Iterator[EndOffset]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            entry = None
        yield _read_line(path, number, entry, default_time)


def _read_line(path: Path, number: int, entry: Any, default_time: datetime) -> EndOffset:
    try:
        ts = entry.get("ts")
        time = default_time if ts is None else _read_time(ts)
        return _make(str(entry["topic"]), entry["partition"], entry["end_offset"], time)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise EndOffsetsError(
            f'{path}, line {number}: expected {{"topic": ..., "partition": 0, "end_offset": 12}}'
        ) from None


def _read_object(path: Path, whole: Any, default_time: datetime) -> Iterator[EndOffset]:
    try:
        for topic, partitions in whole.items():
            for partition, end_offset in partitions.items():
                yield _make(topic, partition, end_offset, default_time)
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise EndOffsetsError(f'{path}: expected {{"topic": {{"0": 12}}}}, or JSON lines') from None


def _make(topic: str, partition: Any, end_offset: Any, time: datetime) -> EndOffset:
    found = EndOffset(topic, int(partition), int(end_offset), time)
    if not (0 <= found.partition < 1 << 31 and 0 <= found.end_offset < 1 << 63):
        raise ValueError(f"{found} is not a partition and offset of a topic")
    return found


def _read_time(ts: Any) -> datetime:
    if isinstance(ts, int):
        return datetime.fromtimestamp(ts / 1000, UTC)
    time = datetime.fromisoformat(ts)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
