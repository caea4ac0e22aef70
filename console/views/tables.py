"""Tables of what is shown, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

ROWS_MAX: Final = 1_000
NONE: Final = "–"


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column; numbers are aligned right."""

    text: str
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts. ``left_out`` rows are not here."""

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    left_out: int = 0


def make_table(
    name: str, caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], count: int
) -> Table:
    """A table of at most ``ROWS_MAX`` of ``count`` rows; what is ``None`` or empty is a dash.

    A column whose name begins with ``#`` has numbers.
    """
    shown = [[render_cell(cell) for cell in row] for row in islice(rows, ROWS_MAX)]
    heads = [Column(text.removeprefix("#"), text.startswith("#")) for text in columns]
    return Table(name, caption, heads, shown, max(count - len(shown), 0))


def render_cell(cell: object) -> str:
    """The text of a cell."""
    return NONE if cell is None or cell == "" else str(cell)
