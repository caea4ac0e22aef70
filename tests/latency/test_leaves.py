"""A few leaves over a long way; `make latency` makes thousands, with every client."""

from __future__ import annotations

import pytest

from tests.latency.matrix import measure

GROUPS = 6


@pytest.mark.timeout(150)
def test_no_leave_is_lost_over_a_long_way() -> None:
    """The parked heartbeat that librdkafka had given up took the leave along."""
    cell = measure("librdkafka", 300, jitter=0.2, groups=GROUPS, rounds=1, timeout_s=100)
    assert cell.is_right(GROUPS), cell
