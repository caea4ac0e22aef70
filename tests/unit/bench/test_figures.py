"""Targets, medians, and when Muster counts as behind."""

import pytest

from bench.figures import Row, Target, flatten, format_value, pick


def make_row(
    kafka: tuple[float, ...],
    muster: tuple[float, ...],
    target: Target | None = None,
    *,
    more_is_better: bool = False,
) -> Row:
    return Row("what", "/s", kafka, muster, target, more_is_better)


def test_the_median_of_the_runs_counts() -> None:
    row = make_row((10, 1000, 20), (40, 30, 1))
    assert (row.kafka_median, row.muster_median, row.ratio) == (20, 30, 1.5)
    assert row.is_reached is None


@pytest.mark.parametrize(
    ("target", "muster", "is_reached"),
    [
        (Target(min_ratio=2), 200, True),
        (Target(min_ratio=2), 199, False),
        (Target(max_ratio=0.5), 50, True),
        (Target(max_ratio=0.5), 51, False),
        (Target(max_value=10), 10, True),
        (Target(max_value=10), 11, False),
        (Target(max_value=60, max_ratio=0.5), 55, False),
        (Target(max_more=5), 105, True),
        (Target(max_more=5), 106, False),
    ],
)
def test_targets(target: Target, muster: float, is_reached: bool) -> None:
    assert make_row((100,), (muster,), target).is_reached is is_reached


def test_without_a_ratio_no_bound_of_it_is_reached() -> None:
    assert make_row((0,), (5,), Target(min_ratio=1)).is_reached is False
    assert make_row((-0.1,), (5,), Target(max_ratio=1)).is_reached is False
    assert make_row((0,), (5,), Target(max_value=5)).is_reached is True


def test_behind_is_less_of_a_rate_and_more_of_anything_else() -> None:
    assert make_row((10,), (9,), more_is_better=True).is_behind
    assert not make_row((10,), (11,), more_is_better=True).is_behind
    assert make_row((10,), (11,)).is_behind


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (54012.3, "/s", "54,012/s"),
        (6.123, "µs", "6.12 µs"),
        (62.34, "ms", "62.3 ms"),
        (0, "B", "0 B"),
        (-0.25, "ms", "-0.25 ms"),
    ],
)
def test_values_for_people(value: float, unit: str, text: str) -> None:
    assert format_value(value, unit) == text


def test_targets_for_people() -> None:
    assert Target(min_ratio=1.3).describe("/s") == "≥ 1.3 ×"
    assert Target(max_ratio=0.5, max_value=10).describe("µs") == "≤ 0.5 × and ≤ 10.0 µs"
    assert Target(max_more=0.3).describe("ms") == "≤ 0.30 ms more"


def test_figures_of_all_reports() -> None:
    reports = [
        {"latency_ms": {"p99": 1}, "join_ms": [1, 2]},
        {"latency_ms": {"p99": 3}, "join_ms": [4]},
    ]
    assert pick(reports, "latency_ms", "p99") == (1, 3)
    assert flatten(reports, "join_ms") == (1, 2, 4)
