"""Past positions in a group's log partition: texts of people as requests have them, and back."""

from __future__ import annotations

import re
from collections.abc import Callable

from muster.v1 import types_pb2
from wording.errors import InputError
from wording.times import TIME_MAX, parse_time, render_time

_OFFSET = re.compile(r"offset:(\d{1,18})")


def parse_as_of(what: str, text: str, now_ms: Callable[[], int]) -> types_pb2.AsOf:
    """Parse a time, an age or ``offset:N``; raises ``InputError`` for anything else."""
    if match := _OFFSET.fullmatch(text):
        return types_pb2.AsOf(offset=int(match[1]))
    timestamp_ms = parse_time(what, text, now_ms)
    if abs(timestamp_ms) > TIME_MAX:
        raise InputError(f"{what} {text!r} is not a time: it is too large")
    return types_pb2.AsOf(timestamp_ms=timestamp_ms)


def render_position(position: types_pb2.LogPosition) -> str:
    """The log position of an answer, in one line."""
    if not position.HasField("offset"):
        return f"as of the beginning of log partition {position.partition}"
    written = render_time(position.timestamp_ms)
    return f"as of offset {position.offset} of log partition {position.partition}, {written}"
