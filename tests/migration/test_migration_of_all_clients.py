"""Members of all clients are replaced by new ones, and back: `tests.migration.rolling`, small."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kafka.java import Event
from tests.migration.check_logs import STANDSTILL_MS, Standstill
from tests.migration.rolling import Plan, migrate


@pytest.mark.java
@pytest.mark.alone
@pytest.mark.timeout(480)
def test_six_members_are_replaced_one_by_one_and_back_with_two_kills(tmp_path: Path) -> None:
    """With the clients' default heartbeat interval. For how long the machine was starved of
    processors does not count. A member that leaves waits for no parked heartbeat."""
    report = migrate(tmp_path, Plan(members=6))
    assert report.types == ["CONSUMER", "CLASSIC"]
    assert report.failures == []
    assert report.double_owners == []
    assert report.unread == []
    assert report.backward == []
    for standstill, starved_ms in [*report.standstills, *report.closes]:
        is_short = standstill.took_ms - starved_ms <= STANDSTILL_MS
        assert is_short, describe(report.events, standstill, starved_ms)


def describe(events: Sequence[Event], standstill: Standstill, starved_ms: float) -> str:
    """What everybody said from shortly before a standstill on, but for records."""
    begin_ms, end_ms = standstill.begin_ms - 1_000, standstill.end_ms
    said = [
        str(event)
        for event in events
        if event["event"] != "records" and begin_ms <= event["at_ms"] <= end_ms
    ]
    return "\n".join([f"{standstill}, starved for {starved_ms:.0f} ms", *said])
