"""Of a store, its ledger says how members went; of anything else, nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.ids import GroupId, MemberId
from model.past.causes import Cause, CauseKind
from model.past.rebalances import Rebalance
from pipeline.tables.ledger import Departure, read_departures
from storage.causes_codec import encode_causes_key, encode_rebalance
from storage.rocks.rocks_opening import open_store
from tests.pipeline.logged import SEGMENTS

GROUP = GroupId("g")
KINDS = (
    CauseKind.MEMBER_JOINED,
    CauseKind.MEMBER_LEFT,
    CauseKind.SESSION_EXPIRED,
    CauseKind.REBALANCE_TIMEOUT,
    CauseKind.ADMINISTRATOR,
)


def test_those_who_did_not_leave_by_themselves_are_found(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=1)
    entries = [
        Rebalance(1_000 + epoch, epoch, epoch + 1, False, Cause(kind, MemberId(f"m{epoch}")))
        for epoch, kind in enumerate(KINDS)
    ]
    # A reset of offsets by an administrator is no departure; nor is damage an end of all.
    entries.append(Rebalance(2_000, 5, 6, False, Cause(CauseKind.ADMINISTRATOR)))
    pairs = [
        (encode_causes_key(GROUP, each.at_ms, each.epoch), encode_rebalance(each))
        for each in entries
    ]
    store.write([], causes=[*pairs, (encode_causes_key(GROUP, 3_000, 7), b"\xff")])
    store.close()
    assert read_departures(tmp_path) == [
        Departure("g", "m2", 3, "session_expired"),
        Departure("g", "m3", 4, "rebalance_timeout"),
        Departure("g", "m4", 5, "administrator"),
    ]


@pytest.mark.parametrize("path", [SEGMENTS, "kafka://127.0.0.1:1", "muster://127.0.0.1:1"])
def test_only_a_store_has_a_ledger(path: Path | str) -> None:
    assert read_departures(path) == []
