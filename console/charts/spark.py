"""Spark lines: a few numbers as a line without axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 100
HEIGHT: Final = 20
_EDGE: Final = 2


@dataclass(frozen=True, slots=True)
class Spark:
    """``points`` as an SVG polyline takes them; ``end`` is the last one."""

    points: str
    end: tuple[str, str]
    low: int
    high: int


def compute_spark(samples: Sequence[tuple[int, int]]) -> Spark | None:
    """A line through (time, number) in the order of time; ``None`` for fewer than two."""
    if len(samples) < 2:
        return None
    (first, _), (last, _) = samples[0], samples[-1]
    low, high = min(n for _, n in samples), max(n for _, n in samples)
    span, rise = max(last - first, 1), high - low
    places = [
        (
            f"{_EDGE + (at - first) / span * (WIDTH - 2 * _EDGE):.0f}",
            f"{HEIGHT - _EDGE - _share(number - low, rise) * (HEIGHT - 2 * _EDGE):.1f}",
        )
        for at, number in samples
    ]
    return Spark(" ".join(map(",".join, places)), places[-1], low, high)


def _share(part: int, whole: int) -> float:
    """A line of equal numbers lies in the middle."""
    return part / whole if whole else 0.5
