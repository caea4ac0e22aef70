"""HTML elements shared by the sections of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.report.svg import element, escape

_MOST_ROWS = 1_000
"""Row limit of a table of figures; further rows are counted."""


@dataclass(frozen=True, slots=True)
class Section:
    """``intro`` is text, ``content`` is HTML."""

    name: str
    title: str
    intro: str
    content: Sequence[str]


def show_section(section: Section) -> str:
    """A section with its heading."""
    heading = f"{section.name}-heading"
    return element(
        "section",
        element("h2", escape(section.title), id=heading),
        element("p", escape(section.intro), class_="quiet"),
        *section.content,
        id=section.name,
        aria_labelledby=heading,
    )


def make_table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    numeric: Sequence[int] = (),
) -> str:
    """The figures of a chart as a collapsed table."""
    shown = [
        element("tr", *[make_cell(value, is_number=i in numeric) for i, value in enumerate(row)])
        for row in rows[:_MOST_ROWS]
    ]
    if len(rows) > _MOST_ROWS:
        rest = f"{len(rows) - _MOST_ROWS:,} more rows are left out."
        shown.append(element("tr", element("td", rest, colspan=len(columns)), class_="rest"))
    table = wrap_table(caption, columns, shown, numeric=numeric)
    return element("details", element("summary", "The figures as a table"), table)


def wrap_table(
    caption: str, columns: Sequence[str], rows: Sequence[str], *, numeric: Sequence[int] = ()
) -> str:
    """A table of HTML rows, which scrolls if it is too wide."""
    heads = [
        element("th", escape(name), scope="col", class_="n" if i in numeric else None)
        for i, name in enumerate(columns)
    ]
    table = element(
        "table",
        element("caption", escape(caption)),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
    )
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)


def make_cell(value: object, *, is_number: bool = False) -> str:
    """A cell of text."""
    shown = f"{value:,}" if isinstance(value, int) else "–" if value is None else str(value)
    return element("td", escape(shown), class_="n" if is_number else None)


def make_head_cell(group_id: str, *more: str, anchor: str | None = None) -> str:
    """The header cell of a row; isolated because the id may be in any writing direction.

    ``anchor`` is where the page has more of the group.
    """
    name = element("bdi", escape(name_group(group_id)))
    shown = name if anchor is None else element("a", name, href=f"#{anchor}")
    return element("th", shown, *more, scope="row")


def name_group(group_id: str) -> str:
    """The name of a group on the page; an id may be empty."""
    return group_id or "(the empty id)"
