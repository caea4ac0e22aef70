"""Rebalances whose records say that a member left, and whose ledger says how."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [
    ("g", 1, 2, "member_left", "a", "session_expired"),
    # Another epoch of the same member, another member, and another group.
    ("g", 6, 7, "member_left", "a", "member_left"),
    ("g", 2, 3, "member_left", "b", "member_left"),
    ("h", 1, 2, "member_left", "a", "member_left"),
    # Of several epochs at once, and the first of a log.
    ("g", 3, 6, "member_left", "c", "rebalance_timeout"),
    ("i", None, 4, "member_left", "d", "administrator"),
    # What came first is the cause, and what no record shows stays unknown.
    ("j", 1, 3, "member_joined", "e", "member_joined"),
    ("j", 3, 4, None, None, None),
]


def test_the_ledger_tells_how_a_member_went(spark: SparkSession) -> None:
    from pipeline.tables.ledger import Departure, name_departures

    departures = [
        Departure("g", "a", 2, "session_expired"),
        Departure("g", "c", 4, "rebalance_timeout"),
        Departure("g", "c", 5, "session_expired"),
        Departure("i", "d", 4, "administrator"),
        Departure("j", "e", 3, "session_expired"),
    ]
    rows = [(number, *row) for number, row in enumerate(ROWS)]
    table = spark.createDataFrame(
        rows,
        "number int, group_id string, from_epoch int, to_epoch int, cause string, "
        "cause_member_id string, expected string",
    )
    named = name_departures(spark, table, departures)
    assert named.columns == table.columns
    found = named.collect()
    assert sorted(row["number"] for row in found) == list(range(len(ROWS)))
    for row in found:
        assert row["cause"] == row["expected"], row
