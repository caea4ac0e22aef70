"""`--as-of`: a past position in a group's log partition."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from muster.v1 import types_pb2

_TIMESTAMP_MAX = (1 << 63) - 1
_OFFSET = re.compile(r"offset:(\d{1,18})")

AsOfOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME|offset:N",
        help="Show the state in the past: at a time (ISO 8601, ms since 1970, or an age such as "
        "90m), or at an offset of the group's log partition.",
    ),
]


def parse_as_of_option(text: str | None) -> types_pb2.AsOf | None:
    """Parse ``--as-of`` for a request, if it is given."""
    return None if text is None else parse_as_of(text)


def parse_as_of(text: str, option: str = "--as-of") -> types_pb2.AsOf:
    """Parse a past position; raise ``CommandError`` unless it is a time or an offset."""
    from cli.log.record_filters import parse_time
    from muster.v1 import types_pb2

    if match := _OFFSET.fullmatch(text):
        return types_pb2.AsOf(offset=int(match[1]))
    timestamp_ms = parse_time(option, text, read_wall_ms)
    if timestamp_ms > _TIMESTAMP_MAX:
        raise CommandError(f"{option} {text!r} is not a time: it is too large", ExitCode.USAGE)
    return types_pb2.AsOf(timestamp_ms=timestamp_ms)


def read_wall_ms() -> int:
    return time.time_ns() // 1_000_000


def render_position(position: types_pb2.LogPosition) -> str:
    """The log position of an answer, in one line."""
    from cli.log.record_line import render_time

    if not position.HasField("offset"):
        return f"as of the beginning of log partition {position.partition}"
    written = render_time(position.timestamp_ms)
    return f"as of offset {position.offset} of log partition {position.partition}, {written}"
