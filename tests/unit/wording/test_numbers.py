"""Whole numbers as people and clients write them."""

from __future__ import annotations

import pytest

from wording.numbers import parse_digits


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("123", 123)])
def test_digits(text: str, number: int) -> None:
    assert parse_digits(text, 3) == number


@pytest.mark.parametrize(
    "text", ["", "1234", "-1", "+1", "1_0", " 1", "1.0", "٣", "²", "9" * 10_000]
)
def test_what_is_no_number_of_so_many_digits(text: str) -> None:
    assert parse_digits(text, 3) is None
