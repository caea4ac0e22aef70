"""Whole numbers as people and clients write them."""

from __future__ import annotations


def parse_digits(text: str, digits: int) -> int | None:
    """The number, or ``None`` unless it is written in 1 to ``digits`` ASCII digits.

    Very many digits would take long to read.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= digits):
        return None
    return int(text)
