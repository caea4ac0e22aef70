"""Charts as inline SVG: labelled axes with units, colours by CSS class, a title on every mark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.report.figures import Lanes
from pipeline.report.scales import (
    DURATION_TICKS_MS,
    Scale,
    compute_ticks,
    compute_time_ticks,
    show_count,
    show_duration,
    show_short,
    show_time,
    show_time_tick,
)
from pipeline.report.svg import element, escape, line, rectangle, text

COLOURS = 8
WIDTH = 960
_HEIGHT = 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 30, 46
_LANE_HEIGHT, _LANE_GAP, _LANE_LEFT = 18, 4, 190
_LABEL_PIXELS = 7.5
_LETTERS = 26
_TIME_LABEL = "time, UTC"

Series = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class ChartText:
    """The name and title of a chart, its description in a sentence, and its y axis label."""

    name: str
    title: str
    description: str
    y_label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic y axis."""

    low: float
    high: float
    ticks: Sequence[float]


def make_duration_axis(durations_ms: Sequence[float]) -> Axis:
    """A y axis from the tick below the shortest duration to the one above the longest."""
    shortest, longest = min(durations_ms, default=1), max(durations_ms, default=1)
    low = max(tick for tick in DURATION_TICKS_MS if tick <= max(1, shortest))
    high = next(tick for tick in DURATION_TICKS_MS if tick > longest)
    return Axis(low, high, [tick for tick in DURATION_TICKS_MS if low <= tick <= high])


def name_letter(number: int) -> str:
    """A, B, …, Z, AA, AB, …: labels that work without colours."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, _LETTERS)
        letters = chr(ord("A") + rest) + letters
    return letters


def draw_bars(
    words: ChartText, series: Series, start_ms: int, window_ms: int, show: Callable[[float], str]
) -> str:
    """Bars over time, one per window, stacked in the order of the series."""
    count = max((len(values) for values in series.values()), default=0)
    totals = [sum(values[i] or 0 for values in series.values()) for i in range(count)]
    end_ms = start_ms + count * window_ms
    frame = _Frame(words, start_ms, end_ms, max(totals, default=0), show)
    width = (frame.x.end - frame.x.start) / max(1, count)
    gap = 1 if width > 3 else 0
    marks: list[str] = []
    for index in range(count):
        bottom = 0.0
        when = show_time(start_ms + index * window_ms)
        for number, (name, values) in enumerate(series.items()):
            value = values[index]
            if not value:
                continue
            top = frame.y.place(bottom + value)
            height = frame.y.place(bottom) - top
            x = frame.x.start + index * width
            marks.append(
                rectangle(
                    x, top, width - gap, height, _colour(number), f"{when}: {show(value)} {name}"
                )
            )
            bottom += value
    return frame.finish(marks, list(series))


def draw_lines(
    words: ChartText,
    series: Series,
    start_ms: int,
    window_ms: int,
    show: Callable[[float], str],
    y: Axis | None = None,
    *,
    is_at_end: bool = False,
) -> str:
    """One line per series, interrupted where a value is unknown; isolated points are dots.

    A value is drawn in the middle of its window, or, with ``is_at_end``, at its end.
    """
    within = 1.0 if is_at_end else 0.5
    count = max((len(values) for values in series.values()), default=0)
    highest = max((v for values in series.values() for v in values if v is not None), default=0)
    frame = _Frame(words, start_ms, start_ms + count * window_ms, highest, show, y=y)
    marks: list[str] = []
    for number, (name, values) in enumerate(series.items()):
        points = [
            None
            if value is None
            else (frame.x.place(start_ms + (index + within) * window_ms), frame.y.place(value))
            for index, value in enumerate(values)
        ]
        marks.append(
            element(
                "path", element("title", escape(name)), d=_make_path(points), class_=_line(number)
            )
        )
        for index, point in enumerate(points):
            alone = points[max(0, index - 1) : index] + points[index + 1 : index + 2]
            if point is not None and not any(alone):
                marks.append(
                    element("circle", cx=point[0], cy=point[1], r=2.5, class_=_colour(number))
                )
    return frame.finish(marks, list(series), is_line=True)


def draw_histogram(
    words: ChartText,
    edges_ms: Sequence[float],
    counts: Sequence[int],
    marked_ms: Mapping[str, float],
) -> str:
    """The number of durations in each range; the x axis is logarithmic."""
    x = Scale(edges_ms[0], edges_ms[-1], _LEFT, WIDTH - _RIGHT, is_log=True)
    frame = _Frame(words, 0, 0, max(counts, default=0), show_short, x=x)
    marks = []
    for (low, high), count in zip(pairwise(edges_ms), counts, strict=True):
        left, right = x.place(low), x.place(high)
        title = f"{show_duration(low)} to {show_duration(high)}: {show_count(count)}"
        if count:
            top = frame.y.place(count)
            marks.append(
                rectangle(left, top, right - left - 1, frame.y.start - top, _colour(0), title)
            )
    # Labels of nearby values are stacked.
    row, last = 0, float("-inf")
    for name, value in marked_ms.items():
        place = x.place(max(value, edges_ms[0]))
        row = row + 1 if place - last < 110 else 0
        last = place
        is_late = place > WIDTH - 150
        marks.append(line(place, _TOP, place, frame.y.start, "marker"))
        marks.append(
            text(
                place + (-5 if is_late else 5),
                _TOP + 11 + 15 * row,
                f"{name} {show_duration(value)}",
                class_="marked",
                text_anchor="end" if is_late else None,
            )
        )
    return frame.finish(marks, [])


def draw_lanes(words: ChartText, lanes: Lanes, names: Sequence[str]) -> str:
    """One lane per partition; its owner is shown by colour and letter, ``names`` has its name."""
    height = _TOP + len(lanes.lanes) * (_LANE_HEIGHT + _LANE_GAP) + _BOTTOM
    x = Scale(lanes.start_ms, lanes.end_ms, _LANE_LEFT, WIDTH - _RIGHT)
    bottom = height - _BOTTOM
    marks = _draw_time_axis(x, lanes.start_ms, lanes.end_ms, bottom)
    marks += [
        line(x.place(time_ms), _TOP - 8, x.place(time_ms), _TOP - 2, "rebalance")
        for time_ms in lanes.rebalances_ms
    ]
    marks.append(text(_LANE_LEFT - 8, _TOP - 10, words.y_label, class_="label", text_anchor="end"))
    for row, lane in enumerate(lanes.lanes):
        top = _TOP + row * (_LANE_HEIGHT + _LANE_GAP)
        name = f"{_shorten(lane.topic, 22)} {lane.partition}"
        middle = top + _LANE_HEIGHT / 2
        marks.append(text(_LANE_LEFT - 8, middle + 4, name, class_="tick", text_anchor="end"))
        marks.append(rectangle(_LANE_LEFT, top, x.end - x.start, _LANE_HEIGHT, "lane"))
        for stay in lane.stays:
            left = x.place(stay.from_ms)
            right = x.place(lanes.end_ms if stay.to_ms is None else stay.to_ms)
            letter = name_letter(stay.member)
            until = "the end" if stay.to_ms is None else show_time(stay.to_ms)
            member_id = lanes.members[stay.member].member_id
            title = (
                f"{lane.topic} {lane.partition}: {letter} {names[stay.member]}, member "
                f"{member_id}, epoch {stay.epoch}, {show_time(stay.from_ms)} to {until}"
            )
            width = max(1.0, right - left - 0.8)
            marks.append(rectangle(left, top, width, _LANE_HEIGHT, _colour(stay.member), title))
            if width > _LABEL_PIXELS * len(letter) + 5:
                marks.append(
                    text(left + width / 2, middle + 4, letter, class_="on", text_anchor="middle")
                )
    return _wrap(words, height, marks)


def draw_spark(values: Sequence[float | None], description: str) -> str:
    """A small line without axes, for a table cell; the description has the numbers."""
    width, height = 120, 26
    highest = max((value for value in values if value is not None), default=0) or 1
    step = width / max(1, len(values) - 1)
    points = [
        None if value is None else (index * step, height - 2 - value / highest * (height - 4))
        for index, value in enumerate(values)
    ]
    return element(
        "svg",
        element("path", d=_make_path(points), class_=_line(0)),
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=description,
        class_="spark",
    )


def draw_legend(names: Sequence[str], *, is_line: bool = False) -> str:
    """The legend of the colours."""
    kind = "key line" if is_line else "key"
    items = [
        element("li", element("span", class_=f"{kind} b{number % COLOURS}"), escape(name))
        for number, name in enumerate(names)
    ]
    return element("ul", *items, class_="legend")


def draw_letters(members: Sequence[tuple[int, str, str]]) -> str:
    """The legend of lanes: the number, name and id of every member. Letters tell colours apart."""
    items = [
        element(
            "li",
            element("span", name_letter(number), class_=f"key letter b{number % COLOURS}"),
            element("bdi", escape(name)),
            title=member_id,
        )
        for number, name, member_id in members
    ]
    return element("ul", *items, class_="legend letters")


class _Frame:
    """Axes, grid and labels around the marks of a chart."""

    def __init__(
        self,
        words: ChartText,
        start_ms: int,
        end_ms: int,
        highest: float,
        show: Callable[[float], str],
        *,
        x: Scale | None = None,
        y: Axis | None = None,
    ) -> None:
        self._words = words
        bottom = _HEIGHT - _BOTTOM
        if y is None:
            ticks: Sequence[float] = compute_ticks(highest)
            self.y = Scale(0, ticks[-1], bottom, _TOP)
        else:
            ticks = y.ticks
            self.y = Scale(y.low, y.high, bottom, _TOP, is_log=True)
        self._back = [text(_LEFT - 52, 14, words.y_label, class_="label")]
        for tick in ticks:
            place = self.y.place(tick)
            self._back.append(line(_LEFT, place, WIDTH - _RIGHT, place, "grid"))
            label = show(tick)
            self._back.append(text(_LEFT - 8, place + 4, label, class_="tick", text_anchor="end"))
        if x is None:
            self.x = Scale(start_ms, end_ms, _LEFT, WIDTH - _RIGHT)
            self._back += _draw_time_axis(self.x, start_ms, end_ms, bottom)
        else:
            self.x = x
            self._back += _draw_duration_axis(x, bottom)

    def finish(self, marks: Sequence[str], names: Sequence[str], *, is_line: bool = False) -> str:
        """The chart, with a legend if there is more than one name."""
        chart = _wrap(self._words, _HEIGHT, [*self._back, *marks])
        return draw_legend(names, is_line=is_line) + chart if len(names) > 1 else chart


def _draw_time_axis(x: Scale, start_ms: int, end_ms: int, y: float) -> list[str]:
    drawn = [line(x.start, y, x.end, y, "axis")]
    ticks = compute_time_ticks(start_ms, end_ms)
    for tick in ticks:
        place = x.place(tick)
        drawn.append(line(place, y, place, y + 5, "axis"))
        anchor = "end" if place > WIDTH - 40 else "middle"
        drawn.append(
            text(place, y + 19, show_time_tick(tick, ticks), class_="tick", text_anchor=anchor)
        )
    drawn.append(text(x.end, y + 38, _TIME_LABEL, class_="label", text_anchor="end"))
    return drawn


def _draw_duration_axis(x: Scale, y: float) -> list[str]:
    drawn = [line(x.start, y, x.end, y, "axis")]
    for tick in DURATION_TICKS_MS:
        if x.low <= tick <= x.high:
            place = x.place(tick)
            drawn.append(line(place, y, place, y + 5, "axis"))
            anchor = "end" if place > WIDTH - 40 else "middle"
            drawn.append(
                text(place, y + 19, show_duration(tick), class_="tick", text_anchor=anchor)
            )
    label = "time to converge, logarithmic"
    drawn.append(text(x.end, y + 38, label, class_="label", text_anchor="end"))
    return drawn


def _wrap(words: ChartText, height: float, content: Sequence[str]) -> str:
    title, description = f"{words.name}-title", f"{words.name}-text"
    svg = element(
        "svg",
        element("title", escape(words.title), id=title),
        element("desc", escape(words.description), id=description),
        *content,
        id=words.name,
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_labelledby=title,
        aria_describedby=description,
        class_="chart",
    )
    return element("div", svg, class_="scroll", tabindex=0, role="region", aria_label=words.title)


def _make_path(points: Sequence[tuple[float, float] | None]) -> str:
    path, is_down = [], False
    for point in points:
        if point is not None:
            path.append(f"{'L' if is_down else 'M'}{point[0]:.1f} {point[1]:.1f}")
        is_down = point is not None
    return "".join(path)


def _colour(number: int) -> str:
    return f"f{number % COLOURS}"


def _line(number: int) -> str:
    return f"s{number % COLOURS}"


def _shorten(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
