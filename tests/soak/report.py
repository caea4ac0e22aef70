"""The table of a soak, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tests.soak.census import is_own
from tests.soak.figures import MEASURES, Measure, Point
from tests.soak.run import Soak
from tests.soak.slopes import Slope, compute_growth, compute_slope

OWN_TOLERANCE: Final = 10
"""So many objects of one type more or fewer are waiting at one time or another."""
OTHERS_TOLERANCE: Final = 400
PLAIN: Final = ("tasks", "threads", "series")
PLAIN_TOLERANCE: Final = 5
_SHOWN: Final = 20


def compute_slopes(points: Sequence[Point]) -> dict[Measure, Slope]:
    hours = [point.at_s / 3_600 for point in points]
    return {
        measure: compute_slope(
            hours, [point.figures[measure.name] / measure.scale for point in points]
        )
        for measure in MEASURES
    }


def compute_grown(points: Sequence[Point]) -> dict[str, float]:
    """What there is more of at each equal point, by how many: types, tasks and the like."""
    living = _compute_growths([point.census.living for point in points])
    garbage = _compute_growths([point.census.garbage for point in points])
    plain = {name: compute_growth([point.figures[name] for point in points]) for name in PLAIN}
    return {
        **{name: more for name, more in plain.items() if more > PLAIN_TOLERANCE},
        **living,
        **{f"{name} in cycles": more for name, more in garbage.items() if is_own(name)},
    }


def _compute_growths(counts: Sequence[Mapping[str, int]]) -> dict[str, float]:
    names = {name for each in counts for name in each}
    growths = {name: compute_growth([each.get(name, 0) for each in counts]) for name in names}
    return {
        name: more
        for name, more in sorted(growths.items(), key=lambda pair: -pair[1])
        if more > (OWN_TOLERANCE if is_own(name) else OTHERS_TOLERANCE)
    }


def print_table(soak: Soak) -> None:
    """Slopes with their errors, what grew by type, what clients did."""
    points = soak.points
    print(
        f"\n{'by the hour':<20} {'slope':>12} {'error':>10} {'limit':>10}   {'from':>12} {'to':>12}"
    )
    for measure, slope in compute_slopes(points).items():
        first, last = (points[n].figures[measure.name] / measure.scale for n in (0, -1))
        verdict = _describe(slope, measure) if soak.is_collecting else ""
        print(
            f"{measure.name:<20} {slope.per_hour:>12,.1f} {slope.error:>10,.1f} "
            f"{measure.limit:>10,.0f} {measure.unit:<2} {first:>12,.1f} {last:>12,.1f}  {verdict}"
        )
    grown = compute_grown(points)
    for name, more in list(grown.items())[:_SHOWN]:
        print(f"  more at each equal point: {more:,.0f} {name}")
    for line in points[-1].census.why:
        print(f"  {line}")
    for what, times in sorted(soak.failed.items(), key=lambda pair: -pair[1])[:_SHOWN]:
        print(f"  failed {times} times: {what}")
    print(f"{sum(soak.done.values()):,} pieces of work in {len(points)} rounds that count")


def _describe(slope: Slope, measure: Measure) -> str:
    if slope.is_above(measure.limit):
        return "grows"
    return "holds" if slope.is_below(measure.limit) else "too short a time to tell"


def describe_verdict(soak: Soak) -> str:
    """One line that says which measure grew; empty where none did."""
    if soak.is_collecting:
        steep = [
            f"{measure.name} ({slope.per_hour:,.1f} ± {slope.error:,.1f} {measure.unit} an hour)"
            for measure, slope in compute_slopes(soak.points).items()
            if slope.is_above(measure.limit)
        ]
    else:
        steep = [f"{name} (by {more:,.0f})" for name, more in compute_grown(soak.points).items()]
    return f"grows: {', '.join(steep)}" if steep else ""
