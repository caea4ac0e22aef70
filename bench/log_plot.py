"""Draws lines on logarithmic axes as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 860, 470, 70, 36, 210, 50
_COLOURS = (
    "#1f77b4", "#6baed6", "#2ca02c", "#98df8a", "#d62728", "#ff9896", "#9467bd", "#c5b0d5",
    "#444444", "#999999",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a plot: cost by size, all above zero."""

    name: str
    points: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where sizes and costs are; `low` and `high` are the powers of ten at the ends."""

    sizes: tuple[int, ...]
    low: int
    high: int

    def x(self, size: float) -> float:
        first, last = log10(self.sizes[0]), log10(self.sizes[-1])
        return _LEFT + (log10(size) - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, cost: float) -> float:
        part = (self.high - log10(cost)) / (self.high - self.low)
        return _TOP + part * (_HEIGHT - _TOP - _BOTTOM)


def draw(curves: Sequence[Curve], *, title: str, label: str, unit: str) -> str:
    """The plot. Grey lines have the slope of a cost in proportion to the size."""
    sizes = tuple(sorted({size for curve in curves for size in curve.points}))
    costs = [cost for curve in curves for cost in curve.points.values()]
    low = floor(log10(min(costs)))
    scale = _Scale(sizes, low, max(ceil(log10(max(costs))), low + 1))
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<clipPath id="c"><rect x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" '
        f'height="{bottom - _TOP}"/></clipPath>',
        f'<text x="{_LEFT}" y="20" font-size="14">{title}; grey: in proportion</text>',
        *_draw_axes(scale, label, unit),
    ]
    for number, curve in enumerate(curves):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(
            f"{scale.x(size):.1f},{scale.y(cost):.1f}" for size, cost in curve.points.items()
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        at = _TOP + 14 + number * 20
        parts.append(_line(right + 16, at - 4, right + 36, at - 4, colour, 'stroke-width="2"'))
        parts.append(_text(right + 42, at, curve.name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def _draw_axes(scale: _Scale, label: str, unit: str) -> list[str]:
    first, last = scale.sizes[0], scale.sizes[-1]
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    decades = ceil(log10(last / first))
    parts = []
    for power in range(scale.low - decades, scale.high + 1):
        cost = 10.0**power
        ends = scale.x(first), scale.y(cost), scale.x(last), scale.y(cost * last / first)
        parts.append(_line(*ends, "#e4e4e4", 'clip-path="url(#c)"'))
    for power in range(scale.low, scale.high + 1):
        at = scale.y(10.0**power)
        parts.append(_line(_LEFT - 4, at, _LEFT, at, "#333"))
        parts.append(_text(_LEFT - 8, at + 4, f"{10.0**power:g} {unit}", "end"))
    for size in scale.sizes:
        parts.append(_line(scale.x(size), bottom, scale.x(size), bottom + 4, "#333"))
        parts.append(_text(scale.x(size), bottom + 18, f"{size:,}", "middle"))
    parts.append(_text((_LEFT + right) / 2, bottom + 38, label, "middle"))
    return [
        *parts,
        _line(_LEFT, _TOP, _LEFT, bottom, "#333"),
        _line(_LEFT, bottom, right, bottom, "#333"),
    ]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
