"""Partitions in few words: ``orders 0-99, 104``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from muster.v1 import types_pb2

RANGES_SHOWN: Final = 6
"""So many ranges are shown; all of them when a reader asks."""
RANGES_MAX: Final = 2_000
"""So many are listed at all."""


@dataclass(frozen=True, slots=True)
class Places:
    """Some partitions. ``rest`` is what does not fit in ``text``, empty if all does."""

    count: int
    text: str
    rest: str = ""


NO_PLACES: Final = Places(0, "")


def compute_places(topics: Iterable[types_pb2.TopicPartitions]) -> Places:
    """The partitions by topic, in ranges. A topic that is gone has its id."""
    count, shown, rest = 0, [], []
    left, listed = RANGES_SHOWN, RANGES_MAX
    for topic in topics:
        ranges = compute_ranges(topic.partitions)
        count += len(topic.partitions)
        name = topic.topic_name or topic.topic_id.hex()
        if left > 0 and ranges:
            shown.append(f"{name} {', '.join(ranges[:left])}")
        if len(ranges) > left and listed > 0:
            hidden = ranges[max(left, 0) :]
            rest.append(f"{name} {', '.join(hidden[:listed])}")
            listed -= len(hidden)
        left -= len(ranges)
    if not count:
        return NO_PLACES
    if listed < 0:
        rest.append("and more: muster group describe lists all")
    return Places(count, "; ".join(shown), "; ".join(rest))


def compute_ranges(partitions: Sequence[int]) -> list[str]:
    """Numbers that follow each other as one range. They are ascending."""
    ranges: list[str] = []
    first = last = -1
    for partition in partitions:
        if first >= 0 and partition == last + 1:
            last = partition
            continue
        if first >= 0:
            ranges.append(_render_range(first, last))
        first = last = partition
    if first >= 0:
        ranges.append(_render_range(first, last))
    return ranges


def _render_range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
