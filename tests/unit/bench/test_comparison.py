"""Rows that changed by more than the noise of both runs, and those that did not."""

from __future__ import annotations

import pytest

from bench.comparison import (
    SMALL,
    UNKNOWN_NOISE,
    KeptRow,
    Spread,
    compare,
    compare_row,
    keep_rows,
)
from bench.figures import Row, Section

KAFKA = Spread(100, 99, 101)


def make_row(
    muster: Spread,
    kafka: Spread = KAFKA,
    what: str = "joins: rate",
    *,
    more_is_better: bool = False,
) -> KeptRow:
    return KeptRow(what, "ms", kafka, muster, more_is_better)


def around(median: float, noise: float = 0.01) -> Spread:
    return Spread(median, median * (1 - noise), median * (1 + noise))


def single(value: float) -> Spread:
    return Spread(value, value, value)


def changes(before: KeptRow, after: KeptRow, *, is_same_machine: bool = True) -> list[str]:
    return [change.unit for change in compare_row(before, after, is_same_machine=is_same_machine)]


def test_a_run_is_kept_as_median_minimum_and_maximum() -> None:
    row = Row("what", "ms", (3, 1, 2), (9, 4, 5, 8), more_is_better=True)
    (kept,) = keep_rows([Section("one", "One", "How.", (row,))])
    assert kept == KeptRow("what", "ms", Spread(2, 1, 3), Spread(6.5, 4, 9), True)


def test_a_ratio_has_the_widest_range_that_its_sides_allow() -> None:
    ratio = make_row(Spread(50, 40, 60), Spread(100, 80, 120)).ratio
    assert ratio == Spread(0.5, 40 / 120, 60 / 80)


def test_ranges_that_overlap_are_noise() -> None:
    before, after = around(50, 0.2), around(70, 0.2)
    assert before.most > after.least
    assert changes(make_row(before), make_row(after)) == []
    assert changes(make_row(after), make_row(before)) == []


def test_ranges_apart_are_a_change_in_either_direction() -> None:
    before, after = make_row(around(50)), make_row(around(60))
    assert changes(before, after) == ["×"]
    assert changes(after, before) == ["×"]


def test_ranges_apart_by_almost_nothing_are_none() -> None:
    kafka = Spread(100, 99.9999, 100.0001)
    before = make_row(around(50, 0.0001), kafka)
    assert changes(before, make_row(around(50 * (1 + SMALL * 0.9), 0.0001), kafka)) == []
    assert changes(before, make_row(around(50 * (1 + SMALL * 1.1), 0.0001), kafka)) == ["×"]


@pytest.mark.parametrize("factor", [1 + UNKNOWN_NOISE, 1 / (1 + UNKNOWN_NOISE)])
@pytest.mark.parametrize("is_kafka_single", [False, True])
def test_values_without_a_range_have_the_stated_tolerance(
    factor: float, is_kafka_single: bool
) -> None:
    """Also if only one side of one run has no range."""
    kafka = single(100) if is_kafka_single else KAFKA
    before = make_row(around(50) if is_kafka_single else single(50), kafka)
    within, beyond = 50 * factor**0.9, 50 * factor**1.1
    assert changes(before, make_row(around(within))) == []
    assert changes(before, make_row(around(beyond))) == ["×"]


def test_a_machine_that_is_slower_for_both_sides_changes_nothing() -> None:
    before = make_row(around(50), around(100))
    after = make_row(around(100), around(200))
    assert changes(before, after) == []


def test_cpu_of_a_machine_that_is_slower_for_both_sides_has_not_changed() -> None:
    what = "joins: server CPU each"
    before = make_row(around(50), around(100), what)
    assert changes(before, make_row(around(100), around(200), what)) == []
    assert changes(before, make_row(around(100), around(100), what)) == ["×"]


def test_without_a_figure_of_kafka_muster_is_compared_by_itself() -> None:
    before, after = make_row(around(50), single(0)), make_row(around(60), single(0))
    assert changes(before, after) == ["ms"]
    assert changes(before, after, is_same_machine=False) == []


def test_a_figure_that_was_zero_is_compared() -> None:
    """Of CPU of idle members, from which that of one member is taken."""
    zero, below = make_row(single(0), single(0)), make_row(single(-1), single(0))
    assert changes(zero, zero) == []
    assert changes(zero, make_row(around(5), single(0))) == ["ms"]
    assert changes(below, make_row(around(5), single(0))) == ["ms"]


@pytest.mark.parametrize("more_is_better", [False, True])
def test_more_of_a_rate_is_better(more_is_better: bool) -> None:
    before = make_row(around(50), more_is_better=more_is_better)
    after = make_row(around(80), more_is_better=more_is_better)
    (up,) = compare_row(before, after, is_same_machine=True)
    (down,) = compare_row(after, before, is_same_machine=True)
    assert (up.is_better, down.is_better) == (more_is_better, not more_is_better)


def test_rows_are_found_by_name_and_others_are_named() -> None:
    gone, new = make_row(around(1), what="gone"), make_row(around(1), what="new")
    found = compare([gone, make_row(around(50))], [new, make_row(around(90))], is_same_machine=True)
    assert [change.what for change in found.changes] == ["joins: rate"]
    assert (found.compared, found.only_before, found.only_after) == (1, ("gone",), ("new",))


def test_rows_without_a_ratio_are_not_compared_on_another_machine() -> None:
    rows = [make_row(around(1)), make_row(around(1), single(0), "idle: CPU")]
    assert compare(rows, rows, is_same_machine=True).compared == 2
    found = compare(rows, rows, is_same_machine=False)
    assert (found.compared, found.only_before, found.only_after) == (1, (), ())
