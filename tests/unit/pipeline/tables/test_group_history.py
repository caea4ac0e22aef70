"""The history of groups in Kafka's own log, without Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise

from pipeline.tables.histories.history_tables import (
    CLASSIC_GENERATIONS,
    GROUP_EPOCHS,
    HISTORY_TABLES,
    MEMBER_EPOCHS,
    MIGRATIONS,
    PARTITION_OWNERSHIP,
    REBALANCES,
    TARGET_ASSIGNMENTS,
)
from pipeline.tables.histories.rebalances import CAUSES
from pipeline.tables.histories.rows import Row
from tests.pipeline.logged import compute_rows, golden_table, read_group_events

CONVERTED = "o15-updown-range"


@cache
def golden_rows() -> dict[str, list[Row]]:
    return compute_rows(read_group_events(golden_table()))


def rows_of(table: str, group_id: str = CONVERTED) -> list[Row]:
    found = [row for row in golden_rows()[table] if row["group_id"] == group_id]
    return sorted(found, key=lambda row: row["offset"])


def test_each_record_has_its_row() -> None:
    types = Counter(event.type_id for event in read_group_events(golden_table()))
    rows = {name: len(found) for name, found in golden_rows().items()}
    assert rows[CLASSIC_GENERATIONS] == types[2]
    assert rows[GROUP_EPOCHS] == types[3]
    assert rows[TARGET_ASSIGNMENTS] == types[7]
    assert rows[MEMBER_EPOCHS] == types[8]


def test_rows_have_the_columns_of_their_tables() -> None:
    for name, rows in golden_rows().items():
        columns = set(HISTORY_TABLES[name].names)
        assert all(row.keys() <= columns for row in rows)


def test_targets_have_the_epoch_that_is_written_after_them() -> None:
    epochs = {row["offset"]: row["assignment_epoch"] for row in rows_of(TARGET_ASSIGNMENTS)}
    assert [epochs[offset] for offset in (59, 60, 66, 67, 68, 85, 99, 119)] == [
        *(2, 2),
        *(3, 3, 3),
        4,
        5,
        6,
    ]


def test_rebalances_of_a_group_that_is_converted_there_and_back() -> None:
    shown = [
        (
            row["protocol"],
            row["from_epoch"],
            row["to_epoch"],
            row.get("duration_ms"),
            row["members_moved"],
            row["partitions_moved"],
            row["cause"],
            (row["cause_member_id"] or "")[:9],
        )
        for row in rows_of(REBALANCES)
    ]
    assert shown[:8] == [
        ("classic", 0, 1, None, 1, 8, "member_joined", "classic-0"),
        ("classic", 1, 2, None, 2, 4, "member_joined", "classic-1"),
        ("consumer", 2, 3, 591, 3, 2, "member_joined", "UadMk14zQ"),
        ("consumer", 3, 4, 593, 3, 2, "member_joined", "PzbLVCuwS"),
        ("consumer", 4, 5, 502, 2, 1, "member_joined", "WjQmBAwBQ"),
        ("consumer", 5, 6, 611, 3, 2, "member_left", "UadMk14zQ"),
        ("classic", 6, 7, None, 3, 7, None, ""),
        ("consumer", 7, 8, 594, 3, 2, "member_joined", "V8qOx2vVT"),
    ]


def test_every_target_that_is_not_of_a_conversion_is_a_rebalance() -> None:
    targets = Counter(
        event.group_id
        for event in read_group_events(golden_table())
        if event.type_id == 6 and event.value is not None
    )
    upgrades = Counter(
        row["group_id"] for row in golden_rows()[MIGRATIONS] if row["direction"] == "upgrade"
    )
    found = Counter(
        row["group_id"] for row in golden_rows()[REBALANCES] if row["protocol"] == "consumer"
    )
    online = Counter(
        row["group_id"]
        for row in golden_rows()[MIGRATIONS]
        if row["direction"] == "upgrade" and row["is_online"]
    )
    assert sum(upgrades.values()) > sum(online.values()) > 0
    for group_id, count in targets.items():
        assert count - upgrades[group_id] <= found[group_id] <= count - online[group_id]
    assert {row["cause"] for row in golden_rows()[REBALANCES]} <= {*CAUSES, None}


def test_times_of_rebalances_are_in_order() -> None:
    for row in golden_rows()[REBALANCES]:
        if row.get("duration_ms") is not None:
            assert row["started_at"] <= row["ts"] <= row["converged_at"]
            assert row["duration_ms"] == (row["converged_at"] - row["started_at"]) // 1000


def test_migrations() -> None:
    shown = [
        (row["direction"], row["from_epoch"], row["to_epoch"], row["members"], row["is_online"])
        for row in rows_of(MIGRATIONS)
    ]
    assert shown == [
        ("upgrade", 2, 2, 2, True),
        ("downgrade", 6, 6, 4, True),
        ("upgrade", 7, 7, 3, True),
        ("downgrade", 12, 0, 0, False),
        ("upgrade", 2, 2, 0, False),
    ]


def test_owners_follow_one_another() -> None:
    """Each partition has at most one owner at a time, and none at the end."""
    by_place: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in golden_rows()[PARTITION_OWNERSHIP]:
        topic = row["topic_id"] or row["topic"]
        by_place[row["group_id"], topic, row["partition"]].append(row)
    for rows in by_place.values():
        rows.sort(key=lambda row: row["offset"])
        for earlier, later in pairwise(rows):
            assert earlier["to_write"] is not None
            assert earlier["to_write"] <= later["from_write"]
        assert rows[-1]["valid_to"] is not None


def test_a_partition_moves_when_its_holder_has_given_it_up() -> None:
    """Partition 7 of the upgrade: from the classic member to the new one, after the revocation."""
    shown = [
        (row["member_id"][:9], row["offset"], row["to_offset"])
        for row in rows_of(PARTITION_OWNERSHIP)
        if row["partition"] == 7 and row["topic_id"] is not None
    ]
    assert shown[:3] == [
        ("classic-1", 63, 75),
        ("UadMk14zQ", 76, 115),
        ("classic-0", 126, 128),
    ]
