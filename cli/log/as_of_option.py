"""`--as-of`: a past position in a group's log partition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from cli.errors import usage_errors

if TYPE_CHECKING:
    from muster.v1 import types_pb2

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
    from wording import positions

    with usage_errors():
        return positions.parse_as_of(option, text, read_wall_ms)


def read_wall_ms() -> int:
    return time.time_ns() // 1_000_000
