"""Partitions with the offsets at which they end, as people write them."""

from __future__ import annotations

import pytest

from wording.errors import InputError
from wording.partitions import parse_ends


def test_ends_are_read() -> None:
    assert parse_ends(["0=42", f"{2**31 - 1}={2**63 - 1}"]) == {0: 42, 2**31 - 1: 2**63 - 1}


@pytest.mark.parametrize(
    "text",
    ["", "0", "0=", "=5", "-1=5", "0=-5", "0=x", f"{2**31}=5", f"0={2**63}", "0=5=6", "²=1"],
)
def test_what_is_no_end_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="as PARTITION=OFFSET"):
        parse_ends([text])


def test_a_partition_ends_in_one_place() -> None:
    with pytest.raises(InputError, match="each partition once"):
        parse_ends(["1=5", "01=6"])
