"""Where `muster group seek` sets offsets, and the file of `muster group reset`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cli.admin.text_files import read_file
from cli.errors import CommandError, ExitCode, usage_errors
from wording.times import parse_moment

if TYPE_CHECKING:
    from muster.v1 import reset_pb2
    from wording.resets import PlanText

_NUMBER = re.compile(r"[+-]?\d{1,19}")


def fill_position(
    request: reset_pb2.ResetOffsetsRequest, text: str, now_ms: Callable[[], int]
) -> None:
    """Set ``to`` of a request to `start`, `end`, `N`, `+N`, `-N` or `@TIME`."""
    from muster.v1 import reset_pb2
    from wording.resets import check_number

    with usage_errors():
        if text == "start":
            request.position = reset_pb2.RESET_POSITION_EARLIEST
        elif text == "end":
            request.position = reset_pb2.RESET_POSITION_LATEST
        elif text.startswith("@"):
            # An age may have a sign: it is in the past anyway.
            request.timestamp_ms = parse_moment("--to", text[1:].removeprefix("-"), now_ms)
        elif _NUMBER.fullmatch(text):
            number = check_number("--to", int(text))
            if text[0] in "+-":
                request.shift_by = number
            else:
                request.offset = number
        else:
            raise CommandError(
                f"--to {text!r} is not a position: use start, end, an offset, +N, -N, or @ and a "
                "time or an age, such as @2026-11-21T20:57:13Z or @90m",
                ExitCode.USAGE,
            )


def read_plan(path: Path) -> PlanText:
    """Read a file of offsets. Raises ``CommandError``."""
    from wording.resets import PlanText

    try:
        return PlanText(str(path), read_file(path).decode())
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not CSV: {error}", ExitCode.USAGE) from error
