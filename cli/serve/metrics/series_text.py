"""Text of gauges that are many: as Prometheus' client writes it, at a fraction of its cost.

A line of a gauge is the same in Prometheus' text format and in OpenMetrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

CHUNK_LINES: Final = 2_000
"""Lines that are joined and encoded at a time, in some 0.3 ms."""

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def escape_label(value: str) -> str:
    """The value of a label as it stands between quotes."""
    if '"' in value or "\\" in value or "\n" in value:
        return value.translate(_ESCAPES)
    return value


def head_lines(name: str, text: str) -> str:
    """What stands before the samples of a gauge; ``text`` needs no escapes."""
    return f"# HELP {name} {text}\n# TYPE {name} gauge\n"


def join_lines(lines: Iterable[str]) -> Iterator[bytes]:
    """Lines in chunks; between two of them, others get their turn."""
    left = iter(lines)
    while taken := list(islice(left, CHUNK_LINES)):
        yield "".join(taken).encode()
