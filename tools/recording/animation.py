"""An animated SVG of a terminal's session: text, shown and hidden at its times, again and again.

Each version of a line is one text, at its place in the whole session, which is moved up as the
terminal scrolled. Viewers that do not animate show the end.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from tools.recording.terminal import Row, Style, Terminal

FONT_PX: Final = 14
ADVANCE_PX: Final = 8.43
LINE_PX: Final = 19
MARGIN_PX: Final = 14
BAR_PX: Final = 30
HOLD_S: Final = 3.0
"""How long the end is seen before it begins again."""
BACKGROUND, FOREGROUND, BAR = "#14181f", "#d5dae2", "#242a35"
PALETTE: Final = (
    "#5c6470", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#d5dae2",
    "#8b949e", "#ffa198", "#a5f0ad", "#f2cc60", "#a5d6ff", "#e2c5ff", "#b3f0f4", "#ffffff",
)  # fmt: skip


def render(terminal: Terminal, end_s: float, title: str) -> str:
    """The whole picture."""
    total_s = end_s + HOLD_S
    width = round(terminal.columns * ADVANCE_PX + 2 * MARGIN_PX)
    inner = terminal.rows * LINE_PX
    height = inner + 2 * MARGIN_PX + BAR_PX
    texts = "\n".join(
        _render_version(line, row, start_s, stop_s, total_s)
        for line, versions in sorted(terminal.versions.items())
        for start_s, stop_s, row in _compute_spans(versions, total_s)
        if row and _is_seen(terminal, line, start_s, stop_s, total_s)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label={quoteattr(title)}>\n<title>{escape(title)}'
        f"</title>\n<style>text{{font:{FONT_PX}px ui-monospace,SFMono-Regular,Menlo,Consolas,"
        f"'DejaVu Sans Mono',monospace;fill:{FOREGROUND};white-space:pre}}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>\n'
        f'<path d="M0 8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v{BAR_PX - 8}H0z" fill="{BAR}"/>\n'
        f'<text x="{width / 2}" y="{BAR_PX / 2 + 5}" text-anchor="middle">{escape(title)}</text>\n'
        f'<svg x="{MARGIN_PX}" y="{BAR_PX + MARGIN_PX}" width="{width - 2 * MARGIN_PX}" '
        f'height="{inner}">\n<g transform="translate(0 {-terminal.top * LINE_PX})">'
        f"{_render_scrolling(terminal, total_s)}\n{texts}\n</g>\n</svg>\n</svg>\n"
    )


def _compute_spans(
    versions: list[tuple[float, Row]], total_s: float
) -> list[tuple[float, float, Row]]:
    stops = [*(at_s for at_s, _ in versions[1:]), total_s]
    return [
        (at_s, stop_s, row)
        for (at_s, row), stop_s in zip(versions, stops, strict=True)
        if stop_s > at_s
    ]


def _is_seen(terminal: Terminal, line: int, start_s: float, stop_s: float, total_s: float) -> bool:
    """Whether the line is on the screen at any time of these."""
    ends = [*(at_s for at_s, _ in terminal.tops[1:]), total_s]
    return any(
        top <= line < top + terminal.rows and at_s < stop_s and end_s > start_s
        for (at_s, top), end_s in zip(terminal.tops, ends, strict=True)
    )


def _render_version(line: int, row: Row, start_s: float, stop_s: float, total_s: float) -> str:
    spans, column = [], 0
    for style, cells in groupby(row, key=lambda cell: cell[1]):
        text = "".join(sign for sign, _ in cells)
        if text.strip():
            x = f' x="{column * ADVANCE_PX:.4g}"' if column else ""
            spans.append(f"<tspan{x}{_render_style(style)}>{escape(text.rstrip())}</tspan>")
        column += len(text)
    content = "".join(spans)
    y = line * LINE_PX + FONT_PX
    is_last = stop_s >= total_s
    if start_s <= 0 and is_last:
        return f'<text y="{y}">{content}</text>'
    times, values = ["0"], ["1" if start_s <= 0 else "0"]
    for at_s, value in ((start_s, "1"), (stop_s, "0")):
        if 0 < at_s < total_s:
            times.append(f"{at_s / total_s:.4f}")
            values.append(value)
    return (
        f'<text y="{y}" opacity="{int(is_last)}">{content}'
        f"{_render_animation('opacity', values, times, total_s)}</text>"
    )


def _render_scrolling(terminal: Terminal, total_s: float) -> str:
    if len(terminal.tops) == 1:
        return ""
    times = [f"{at_s / total_s:.4f}" for at_s, _ in terminal.tops]
    values = [f"0 {-top * LINE_PX}" for _, top in terminal.tops]
    return (
        '<animateTransform attributeName="transform" type="translate" calcMode="discrete" '
        f'dur="{total_s:.1f}s" repeatCount="indefinite" keyTimes="{";".join(times)}" '
        f'values="{";".join(values)}"/>'
    )


def _render_animation(name: str, values: list[str], times: list[str], total_s: float) -> str:
    return (
        f'<animate attributeName="{name}" calcMode="discrete" dur="{total_s:.1f}s" '
        f'repeatCount="indefinite" keyTimes="{";".join(times)}" values="{";".join(values)}"/>'
    )


def _render_style(style: Style) -> str:
    found = ""
    if style.colour is not None:
        found += f' fill="{PALETTE[style.colour]}"'
    if style.bold:
        found += ' font-weight="bold"'
    if style.faint:
        found += ' opacity=".6"'
    return found
