"""What a terminal shows of the bytes that a program writes, with the time of each change.

As much of ECMA-48 as bash and rich use. Lines are counted from the first one of the session on: a
line that scrolls away keeps its number, and `top` says which one is the first that is seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_ESCAPE: Final = re.compile(
    r"\x1b(?:\[([?>=]?)([0-9;]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78cDEHM])"
)
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[?>=]?[0-9;]*|\][^\x07\x1b]*|[()])?$")
_TAB: Final = 8


class Style(NamedTuple):
    """Colour 0 to 15 or ``None``, and whether bold or faint."""

    colour: int | None = None
    bold: bool = False
    faint: bool = False


PLAIN: Final = Style()
Cell = tuple[str, Style]
Row = tuple[Cell, ...]


@dataclass
class Terminal:
    """``versions`` has the contents of each line with their times; ``tops`` those of `top`."""

    columns: int
    rows: int
    versions: dict[int, list[tuple[float, Row]]] = field(default_factory=dict)
    tops: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])
    _lines: dict[int, list[Cell]] = field(default_factory=dict)
    _line: int = 0
    _column: int = 0
    _style: Style = PLAIN
    _rest: str = ""
    _touched: set[int] = field(default_factory=set)

    def reset(self) -> None:
        """As new."""
        self.versions.clear()
        self._lines.clear()
        self.tops = [(0.0, 0)]
        self._line = self._column = 0

    @property
    def top(self) -> int:
        return self.tops[-1][1]

    def feed(self, text: str, at_s: float) -> None:
        """Show what was written at that time."""
        text, self._rest = self._rest + text, ""
        cut = _UNFINISHED.search(text)
        if cut is not None:
            text, self._rest = text[: cut.start()], text[cut.start() :]
        place = 0
        for found in _ESCAPE.finditer(text):
            self._write(text[place : found.start()], at_s)
            if found[3] is not None and not found[1]:
                self._obey(found[3], [int(each or 0) for each in found[2].split(";")])
            place = found.end()
        self._write(text[place:], at_s)
        self._note(at_s)

    def _write(self, text: str, at_s: float) -> None:
        for sign in text:
            match sign:
                case "\n":
                    self._move_down(at_s)
                case "\r":
                    self._column = 0
                case "\b":
                    self._column = max(self._column - 1, 0)
                case "\t":
                    self._column = min((self._column // _TAB + 1) * _TAB, self.columns - 1)
                case _ if sign.isprintable():
                    if self._column == self.columns:
                        self._column = 0
                        self._move_down(at_s)
                    self._put(sign)

    def _put(self, sign: str) -> None:
        cells = self._lines.setdefault(self._line, [])
        cells.extend([(" ", PLAIN)] * (self._column + 1 - len(cells)))
        cells[self._column] = (sign, self._style)
        self._column += 1
        self._touched.add(self._line)

    def _move_down(self, at_s: float) -> None:
        self._line += 1
        if self._line >= self.top + self.rows:
            self._note(at_s)
            self.tops.append((at_s, self._line - self.rows + 1))

    def _obey(self, final: str, numbers: list[int]) -> None:
        count = max(numbers[0], 1)
        match final:
            case "A":
                self._line = max(self._line - count, self.top)
            case "B":
                self._line = min(self._line + count, self.top + self.rows - 1)
            case "C":
                self._column = min(self._column + count, self.columns - 1)
            case "D":
                self._column = max(self._column - count, 0)
            case "G":
                self._column = min(count, self.columns) - 1
            case "K":
                self._erase(self._line, *self._compute_span(numbers[0]))
            case "J":
                self._erase(self._line, *self._compute_span(0))
                for line in [each for each in self._lines if each > self._line]:
                    self._erase(line, 0, self.columns)
            case "m":
                for number in numbers:
                    self._style = _restyle(self._style, number)

    def _compute_span(self, how: int) -> tuple[int, int]:
        starts, ends = {0: self._column}, {1: self._column + 1}
        return starts.get(how, 0), ends.get(how, self.columns)

    def _erase(self, line: int, start: int, end: int) -> None:
        cells = self._lines.get(line, [])
        for at in range(start, min(end, len(cells))):
            cells[at] = (" ", PLAIN)
        self._touched.add(line)

    def _note(self, at_s: float) -> None:
        for line in self._touched:
            cells = list(self._lines.get(line, []))
            while cells and cells[-1] == (" ", PLAIN):
                cells.pop()
            row = tuple(cells)
            if not row and line not in self.versions:
                continue
            known = self.versions.setdefault(line, [])
            if known and known[-1][0] == at_s:
                known.pop()
            if not known or known[-1][1] != row:
                known.append((at_s, row))
        self._touched.clear()


def _restyle(style: Style, number: int) -> Style:
    match number:
        case 0:
            return PLAIN
        case 1:
            return style._replace(bold=True)
        case 2:
            return style._replace(faint=True)
        case 22:
            return style._replace(bold=False, faint=False)
        case 39:
            return style._replace(colour=None)
        case _ if 30 <= number <= 37:
            return style._replace(colour=number - 30)
        case _ if 90 <= number <= 97:
            return style._replace(colour=number - 82)
        case _:
            return style
