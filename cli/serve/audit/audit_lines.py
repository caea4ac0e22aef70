"""One line of the audit log: an object of JSON, in ASCII, of bounded length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from itertools import islice
from typing import Any, Final

from wording.times import render_time

TEXT_MAX: Final = 300
"""Characters of one text; of a longer one the first are shown."""
ENTRIES_MAX: Final = 1_000
"""Entries of one list or mapping."""
LINE_MAX: Final = 256 * 1024
"""Bytes of a line. Only what is very long or mostly escaped would need more: entries are cut."""
DEPTH_MAX: Final = 6
MORE: Final = "…"
"""Ends what is cut; as a key, its value is the number of entries that are left out."""


def clip(text: str) -> str:
    """The text, or the beginning of a long one."""
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + MORE


def encode_line(time_s: float, event: str, fields: Mapping[str, object]) -> bytes:
    """The line, with its line feed. Fields that are empty are left out; ``None`` is ``null``.

    JSON escapes whatever could end a line or change a terminal: all but printable ASCII.
    """
    head = {"time": render_time(int(time_s * 1_000)), "event": event}
    entries = ENTRIES_MAX
    while True:
        bounded = {name: _bound(value, entries, DEPTH_MAX) for name, value in fields.items()
                   if value != "" and value != ()}  # fmt: skip
        line = json.dumps(head | bounded).encode() + b"\n"
        if len(line) <= LINE_MAX or not entries:
            return line
        entries //= 4


def _bound(value: object, entries: int, depth: int) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return clip(value)
        case Enum():
            return clip(str(value.value))
        case Mapping() if depth:
            bounded = {
                clip(str(name)): _bound(each, entries, depth - 1)
                for name, each in islice(value.items(), entries)
            }
            return bounded | {MORE: len(value) - entries} if len(value) > entries else bounded
        case list() | tuple() | set() | frozenset() if depth:
            rows = [_bound(each, entries, depth - 1) for each in islice(value, entries)]
            return [*rows, MORE] if len(value) > entries else rows
        case Mapping() | list() | tuple() | set() | frozenset():
            return MORE
        case _:
            return clip(str(value))
