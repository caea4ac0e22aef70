"""What is taken for a ``traceparent``."""

from __future__ import annotations

import pytest

from coordinator.runtime.trips.traceparent import find_parent, parse_traceparent
from coordinator.runtime.trips.trip import Parent, SpanId

IDS = SpanId(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7)
VALID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_parent_is_found_among_metadata() -> None:
    metadata = (("other", b"\x00"), ("traceparent", VALID))
    assert find_parent(metadata) == Parent(IDS, is_sampled=True)
    assert find_parent(None) is None
    assert parse_traceparent(VALID[:-1] + "0") == Parent(IDS, is_sampled=False)
    assert parse_traceparent("cc" + VALID[2:] + "-later") == Parent(IDS, is_sampled=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        VALID[:-1],
        VALID + "-more",
        VALID + "\n",
        VALID.upper(),
        "ff" + VALID[2:],
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
        VALID.encode(),
        "cc" + VALID[2:] + "-" + "x" * 10_000,
    ],
)
def test_what_is_not_valid_is_no_parent(text: str | bytes) -> None:
    assert parse_traceparent(text) is None
