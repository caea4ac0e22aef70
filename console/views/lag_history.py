"""Lags that were seen lately, while somebody looked at the group: where a trend comes from."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

SAMPLES_MAX: Final = 60
"""The most samples of a group, or of a partition."""
SPACING_MS: Final = 1_500
"""Samples that are closer to the one before replace it."""
PARTITIONS_MAX: Final = 10_000
"""Partitions of a group beyond these have no trend."""
TREND_MS: Final = 10_000
"""A trend needs samples over so long a time."""

Place: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class LagHistory:
    """The lags of one group, of all its partitions together and of each."""

    total: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=SAMPLES_MAX))
    by_place: dict[Place, deque[tuple[int, int]]] = field(default_factory=dict)

    def add(self, at_ms: int, lags: dict[Place, int]) -> None:
        """Note the lags that are known now; of other partitions the samples are forgotten."""
        _add(self.total, at_ms, sum(lags.values()))
        for place in self.by_place.keys() - lags.keys():
            del self.by_place[place]
        for place, lag in lags.items():
            samples = self.by_place.get(place)
            if samples is None:
                if len(self.by_place) >= PARTITIONS_MAX:
                    continue
                samples = self.by_place[place] = deque(maxlen=SAMPLES_MAX)
            _add(samples, at_ms, lag)

    def describe_trend(self, place: Place) -> str:
        """How the lag of a partition changes, in words; empty if that is not known yet."""
        return describe_trend(self.by_place.get(place, ()))


def _add(samples: deque[tuple[int, int]], at_ms: int, lag: int) -> None:
    if len(samples) > 1 and at_ms - samples[-2][0] < SPACING_MS:
        samples.pop()
    samples.append((at_ms, lag))


def describe_trend(samples: Sequence[tuple[int, int]]) -> str:
    """``falls 120/min, none in 3 m 0 s``, ``rises 5/min`` or ``steady``; empty if too few."""
    if len(samples) < 2:
        return ""
    (began_ms, before), (ended_ms, after) = samples[0], samples[-1]
    took_ms = ended_ms - began_ms
    if took_ms < TREND_MS:
        return ""
    per_min = round((after - before) * 60_000 / took_ms)
    if not per_min:
        return "steady" if after else "none"
    if per_min > 0:
        return f"rises {per_min:,}/min"
    text = f"falls {-per_min:,}/min"
    if after:
        text += f", none in {_render_minutes(after / -per_min)}"
    return text


def _render_minutes(minutes: float) -> str:
    if minutes < 1:
        return "less than 1 min"
    return f"{minutes:,.0f} min" if minutes < 120 else f"{minutes / 60:,.0f} h"
