"""Quantiles of the histogram against those of the sorted values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cli.load.figures.histogram import RELATIVE_ERROR, Histogram

VALUES = st.lists(
    st.one_of(
        st.integers(0, 300),
        st.integers(0, 10**7),
        st.integers(0, 2**63 - 1),
        st.integers(0, 62).flatmap(lambda bit: st.integers(max(0, 2**bit - 2), 2**bit + 2)),
    ),
    min_size=1,
    max_size=200,
)
PARTS = st.one_of(st.sampled_from((0.5, 0.9, 0.99, 0.999, 1.0)), st.floats(0.001, 1))


def count(values: Sequence[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


def compute_exact(values: Sequence[int], part: float) -> int:
    return sorted(values)[max(1, math.ceil(part * len(values))) - 1]


@given(VALUES, PARTS)
def test_a_quantile_is_never_below_the_exact_one_and_hardly_above(
    values: list[int], part: float
) -> None:
    exact = compute_exact(values, part)
    found = count(values).quantile(part)
    assert found is not None
    assert exact <= found
    assert found - exact <= exact * RELATIVE_ERROR


@given(VALUES, VALUES, PARTS)
def test_merged_histograms_count_the_values_of_both(
    some: list[int], others: list[int], part: float
) -> None:
    merged = count(some)
    merged.merge(count(others))
    both = count(some + others)
    assert merged.quantile(part) == both.quantile(part)
    assert (merged.count, merged.highest) == (both.count, both.highest)


@given(VALUES)
def test_what_was_dumped_is_loaded(values: list[int]) -> None:
    histogram = count(values)
    loaded = Histogram.load(histogram.dump())
    assert loaded.dump() == histogram.dump()
    assert loaded.quantile(0.5) == histogram.quantile(0.5)


def test_an_empty_histogram_has_no_quantile() -> None:
    assert Histogram().quantile(0.5) is None
    assert Histogram.load(Histogram().dump()).count == 0


def test_a_clock_that_went_back_counts_as_nothing() -> None:
    assert count([-5]).quantile(1.0) == 0
