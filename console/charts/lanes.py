"""Swim lanes: who had a partition when, as rectangles of SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

WIDTH: Final = 960
LANE_HEIGHT: Final = 18
LANE_GAP: Final = 4
HEAD_HEIGHT: Final = 24
COLORS: Final = 8
PATTERNS: Final = 4
"""Owners have one of so many colors and patterns: beyond both they share."""
LEAST_WIDTH: Final = 1.0
"""What lasts for less is still seen."""
CHAR_WIDTH: Final = 7.5


class Kind(StrEnum):
    """What a partition was."""

    OWNED = "owned"
    WITHHELD = "withheld"
    """Another member is to get it, or nobody, and its owner has not given it up."""
    GAP = "gap"
    """It was assigned to somebody, who did not own it yet; or to nobody."""


class Stretch(NamedTuple):
    """What a partition was from one time (ms) to another. Members by number, -1 for none."""

    begin_ms: int
    end_ms: int
    owner: int
    target: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle. ``text`` fits in it; ``about`` says all, in words."""

    x: float
    width: float
    kind: str
    color: int
    pattern: int
    text: str
    about: str


@dataclass(frozen=True, slots=True)
class LaneChart:
    """A lane of boxes with its place from above."""

    y: int
    label: str
    boxes: Sequence[Box]


class Tick(NamedTuple):
    """A time on the axis."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Where times are; ``begin_ms`` is at the left end."""

    begin_ms: int
    end_ms: int

    def find_x(self, at_ms: int) -> float:
        """The place of a time, rounded to what a screen can show."""
        length_ms = max(self.end_ms - self.begin_ms, 1)
        share = min(max((at_ms - self.begin_ms) / length_ms, 0.0), 1.0)
        return round(share * WIDTH, 1)


def compute_color(owner: int) -> int:
    """The color of an owner, from 1."""
    return owner % COLORS + 1


def compute_pattern(owner: int) -> int:
    """The pattern of an owner; 0 for none."""
    return owner // COLORS % PATTERNS


def compute_boxes(
    stretches: Iterable[Stretch], scale: Scale, labels: Sequence[str], says: Sequence[str]
) -> list[Box]:
    """The boxes of a lane. ``labels`` are short names of members, ``says`` tells of stretches."""
    boxes = []
    for stretch, about in zip(stretches, says, strict=True):
        begin, end = scale.find_x(stretch.begin_ms), scale.find_x(stretch.end_ms)
        width = round(max(end - begin, LEAST_WIDTH), 1)
        owner = stretch.owner
        label = labels[owner] if owner >= 0 else "nobody"
        if stretch.kind is Kind.WITHHELD:
            label += f" → {labels[stretch.target] if stretch.target >= 0 else 'nobody'}"
        boxes.append(
            Box(
                min(begin, WIDTH - width),
                width,
                str(stretch.kind),
                compute_color(owner) if owner >= 0 else 0,
                compute_pattern(owner) if owner >= 0 else 0,
                label if len(label) * CHAR_WIDTH <= width - 4 else "",
                about,
            )
        )
    return boxes


def compute_ticks(scale: Scale, render: Callable[[int], str], count: int = 6) -> list[Tick]:
    """Times along the axis. ``render`` writes one."""
    length_ms = scale.end_ms - scale.begin_ms
    times = [scale.begin_ms + length_ms * number // count for number in range(count)]
    return [Tick(scale.find_x(each), render(each)) for each in dict.fromkeys(times)]


def compute_height(lanes: int) -> int:
    """Of a chart of so many lanes."""
    return HEAD_HEIGHT + lanes * (LANE_HEIGHT + LANE_GAP)


def compute_y(number: int) -> int:
    """Of a lane by its number, from 0."""
    return HEAD_HEIGHT + number * (LANE_HEIGHT + LANE_GAP)
