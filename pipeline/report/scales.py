"""Axes of charts: positions and labels of ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

_STEPS_MS = (
    *(step * SECOND_MS for step in (1, 2, 5, 10, 15, 30)),
    *(step * MINUTE_MS for step in (1, 2, 5, 10, 15, 30)),
    *(step * HOUR_MS for step in (1, 2, 3, 6, 12)),
    *(step * DAY_MS for step in (1, 2, 5, 10, 20, 50, 100, 200, 365)),
)
DURATION_TICKS_MS = (
    *(1, 10, 100, SECOND_MS, 10 * SECOND_MS, MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 10 * HOUR_MS),
    *(2 * DAY_MS, 20 * DAY_MS, 200 * DAY_MS, 2_000 * DAY_MS, 100_000 * DAY_MS),
)
"""Ticks of a logarithmic axis."""

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_WINDOWS = 96
"""Most windows of a chart, so that bars are some pixels wide."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values from ``low`` to ``high`` to positions from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """The position of a value; values outside are clamped."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            part = (math.log(value) - math.log(self.low)) / (
                math.log(self.high) - math.log(self.low)
            )
        else:
            part = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + part * (self.end - self.start)


def compute_window_ms(start_ms: int, end_ms: int, most: int = _WINDOWS) -> int:
    """The shortest round window that gives at most ``most`` windows."""
    span = max(1, end_ms - start_ms)
    for step in _STEPS_MS:
        if span / step <= most:
            return step
    return DAY_MS * math.ceil(span / most / DAY_MS)


def compute_ticks(high: float, most: int = 5) -> list[float]:
    """Round numbers from 0 to at least ``high``, in at most ``most`` steps."""
    if high <= 0:
        return [0, 1]
    raw = high / most
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * (1 - 1e-9))
    # Counts are whole numbers.
    step = max(step, 1.0)
    return [step * number for number in range(math.ceil(high / step - 1e-9) + 1)]


def compute_time_ticks(start_ms: int, end_ms: int, most: int = 8) -> list[int]:
    """Round times (UTC) within a range."""
    span = max(1, end_ms - start_ms)
    step = next((step for step in _STEPS_MS if span / step <= most), None)
    if step is None:
        step = DAY_MS * math.ceil(span / most / DAY_MS)
    first = -(-start_ms // step) * step
    return list(range(first, end_ms + 1, step))


def show_time_tick(time_ms: int, ticks: Sequence[int]) -> str:
    """The part of a time that differs from its neighbours."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else DAY_MS
    time = to_datetime(time_ms)
    if step >= DAY_MS:
        return f"{time.day} {time:%b}"
    if time_ms % DAY_MS == 0:
        return f"{time.day} {time:%b}"
    return f"{time:%H:%M}" if step >= MINUTE_MS else f"{time:%H:%M:%S}"


def to_datetime(time_ms: int) -> datetime:
    """The time in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def show_time(time_ms: int | None) -> str:
    """A full time to the second, in UTC."""
    return "–" if time_ms is None else f"{to_datetime(time_ms):%Y-%m-%d %H:%M:%S}"


def show_duration(duration_ms: float | None) -> str:
    """A duration in the usual unit for its size."""
    if duration_ms is None:
        return "–"
    if duration_ms < 0:
        return "−" + show_duration(-duration_ms)
    for size, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s")):
        if duration_ms >= size:
            return f"{_round(duration_ms / size)} {unit}"
    return f"{_round(duration_ms)} ms"


def show_count(value: float) -> str:
    """A full number with thousands separators."""
    return f"{value:,.0f}"


def show_short(value: float) -> str:
    """A number as a tick label: 12 k, 3.4 M."""
    for size, unit in _UNITS:
        if abs(value) >= size:
            return f"{_round(value / size)} {unit}"
    return _round(value)


def _round(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2g}"
