"""The owners of the partitions of a few groups, from the table ``partition_ownership``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit, when

from pipeline.report.figures import Lane, Lanes, Member, Stay

_MOST_LANES = 24
_MOST_STAYS = 200
_MARGIN = 0.02
"""The margin before the first change of owner, as a fraction of the time shown."""

_LANE = ("group_id", "name", "partition")


def compute_lanes(
    ownership: DataFrame, rebalances: DataFrame, groups: Sequence[str], end_ms: int
) -> list[Lanes]:
    """The last changes of owner of some partitions, for those groups that ever had an owner."""
    chosen = ownership.where(col("group_id").isin(list(groups))).withColumn(
        "name", sql.coalesce("topic", "topic_id")
    )
    by_lane = Window.partitionBy("group_id").orderBy("name", "partition")
    by_end = Window.partitionBy("group_id").orderBy(
        sql.desc(sql.coalesce("valid_to", lit(datetime.max))), sql.desc("valid_from"), *_LANE[1:]
    )
    numbered = chosen.withColumn("lane", sql.dense_rank().over(by_lane)).persist()
    sizes = {
        row["group_id"]: row
        for row in numbered.groupBy("group_id")
        .agg(
            sql.max("lane").alias("lanes"),
            sql.count(when(col("lane") <= _MOST_LANES, 1)).alias("stays"),
        )
        .collect()
    }
    rows = (
        numbered.where(col("lane") <= _MOST_LANES)
        .withColumn("number", sql.row_number().over(by_end))
        .where(col("number") <= _MOST_STAYS)
        .select(
            *_LANE,
            "lane",
            "member_id",
            "assignment_epoch",
            sql.unix_millis("valid_from").alias("from_ms"),
            sql.unix_millis("valid_to").alias("to_ms"),
        )
        .orderBy("group_id", "lane", "from_ms")
        .collect()
    )
    numbered.unpersist()
    by_group: defaultdict[str, list[Any]] = defaultdict(list)
    for row in rows:
        by_group[row["group_id"]].append(row)
    found = [name for name in groups if name in by_group]
    starts = {name: _find_start(by_group[name], sizes[name]["stays"], end_ms) for name in found}
    times = _read_times(rebalances, found)
    return [
        _make_lanes(name, by_group[name], sizes[name], starts[name], end_ms, times.get(name, []))
        for name in found
    ]


def _find_start(rows: Sequence[Any], stays: int, end_ms: int) -> int:
    """The start of the chart: the first owner, or the time from which all stays are shown."""
    if stays > len(rows):
        return min((row["to_ms"] for row in rows if row["to_ms"] is not None), default=end_ms)
    first = min(row["from_ms"] for row in rows)
    return int(first - _MARGIN * max(1_000, end_ms - first))


def _read_times(rebalances: DataFrame, groups: Sequence[str]) -> dict[str, list[int]]:
    if not groups:
        return {}
    rows = (
        rebalances.where(col("group_id").isin(list(groups)))
        .groupBy("group_id")
        .agg(sql.sort_array(sql.collect_list(sql.unix_millis("ts"))).alias("times"))
        .collect()
    )
    return {row["group_id"]: row["times"] for row in rows}


def _make_lanes(
    group_id: str,
    rows: Sequence[Any],
    size: Any,
    start_ms: int,
    end_ms: int,
    rebalances_ms: Sequence[int],
) -> Lanes:
    shown = [row for row in rows if row["to_ms"] is None or row["to_ms"] > start_ms]
    in_order = sorted(shown, key=lambda row: (row["from_ms"], row["lane"]))
    members = {row["member_id"]: None for row in in_order}
    numbers = {member: number for number, member in enumerate(members)}
    by_lane: defaultdict[tuple[str, int], list[Stay]] = defaultdict(list)
    for row in shown:
        by_lane[row["name"], row["partition"]].append(
            Stay(numbers[row["member_id"]], row["assignment_epoch"], row["from_ms"], row["to_ms"])
        )
    lanes = [Lane(topic, number, stays) for (topic, number), stays in sorted(by_lane.items())]
    return Lanes(
        group_id,
        start_ms,
        max(end_ms, start_ms + 1),
        [Member(member) for member in members],
        lanes,
        [time_ms for time_ms in rebalances_ms if start_ms <= time_ms <= end_ms],
        max(0, size["lanes"] - _MOST_LANES),
        size["stays"] - len(shown),
    )
