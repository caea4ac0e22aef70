"""Expectations: what they say, and what they are compared with."""

from __future__ import annotations

import pytest

from cli.load.figures.figures import Figures, compute_expected
from cli.load.options.expectations import ExpectationError, parse_expectation


def compute_some() -> dict[str, float | None]:
    figures = Figures(answered=1000)
    for ms in range(1, 101):
        figures.latency.add(ms * 1_000_000)
    figures.errors["NOT_COORDINATOR"] = 3
    return compute_expected(figures, 2.0)


@pytest.mark.parametrize(
    "text",
    ["p99<101ms", "p50 <= 51ms", "p99<0.101s", "p50>49000us", "rate>499", "rate>=500", "errors<4"],
)
def test_it_holds(text: str) -> None:
    assert parse_expectation(text).check(compute_some()) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("rate>500", "expected rate>500, but rate is 500"),
        ("errors<1", "expected errors<1, but errors is 3"),
        ("max<100ms", "expected max<100ms, but max is 100 ms"),
        (
            "convergence_p99<1s",
            "expected convergence_p99<1s, but nothing was measured for convergence_p99",
        ),
    ],
)
def test_it_fails_with_the_figure(text: str, line: str) -> None:
    assert parse_expectation(text).check(compute_some()) == line


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("p99", "is no expectation such as p99<20ms"),
        ("p99<20", "p99 needs a unit"),
        ("p98<20ms", "there is no figure p98"),
        ("rate>5ms", "rate has no unit"),
        ("p99=20ms", "is no expectation"),
    ],
)
def test_what_is_none_says_what_one_is(text: str, says: str) -> None:
    with pytest.raises(ExpectationError, match=says):
        parse_expectation(text)
