"""Figures of lag, from the table ``group_lag``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, when

from pipeline.report.figures import LagFigures, LaggingGroup
from pipeline.report.rebalance_figures import Windows

_PLACE = ("group_id", "topic", "partition")


def compute_lag(
    group_lag: DataFrame, latest: DataFrame, windows: Windows, top: int
) -> LagFigures | None:
    """The lag of groups at the end and over time; ``None`` if no end offset is known.

    ``latest`` has the offsets that exist at the end: deleted offsets have no lag.
    """
    there = group_lag.join(latest.select(*_PLACE), list(_PLACE), "left_semi")
    last = (
        there.groupBy(*_PLACE)
        .agg(sql.max_by(sql.struct("lag", "lag_seconds", "status"), "ts").alias("last"))
        .persist()
    )
    statuses = {
        row["status"]: row["count"] for row in last.groupBy("last.status").count().collect()
    }
    lag = col("last.lag")
    groups = last.groupBy("group_id").agg(
        sql.sum(lag).alias("lag"),
        sql.max("last.lag_seconds").alias("lag_s"),
        sql.count("*").alias("partitions"),
    )
    whole = groups.agg(sql.sum("lag").alias("lag"), sql.count("lag").alias("groups")).first()
    unknown = last.agg(sql.count(when(lag.isNull(), 1)).alias("unknown")).first()
    assert whole is not None
    assert unknown is not None
    if not whole["groups"]:
        last.unpersist()
        return None
    first = (
        groups.where(col("lag").isNotNull())
        .orderBy(sql.desc("lag"), "group_id")
        .limit(top)
        .collect()
    )
    names = [row["group_id"] for row in first]
    of_group = _count_statuses(last, names)
    series = _read_series(group_lag, names, windows)
    last.unpersist()
    shown = [
        LaggingGroup(
            row["group_id"],
            row["lag"],
            row["lag_s"],
            max([row["lag"], *(v for v in series[row["group_id"]] if v is not None)]),
            row["partitions"],
            of_group[row["group_id"]],
            series[row["group_id"]],
        )
        for row in first
    ]
    return LagFigures(
        windows.start_ms,
        windows.window_ms,
        shown,
        whole["groups"] - len(shown),
        whole["lag"] - sum(group.lag for group in shown),
        statuses,
        unknown["unknown"],
    )


def _compute_end() -> Column:
    """The last moment of a window of the table."""
    return sql.coalesce(col("window_end") - sql.expr("INTERVAL 1 MILLISECOND"), "ts")


def _count_statuses(last: DataFrame, groups: Sequence[str]) -> dict[str, Counter[str]]:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    chosen = last.where(col("group_id").isin(list(groups)))
    for row in chosen.groupBy("group_id", "last.status").count().collect():
        found[row["group_id"]][row["status"]] += row["count"]
    return found


def _read_series(
    group_lag: DataFrame, groups: Sequence[str], windows: Windows
) -> dict[str, list[int | None]]:
    """The lag at the end of each window; without a new value a partition keeps its last one.

    The table's windows have another size. A lag is that of the end of its window there, so it
    belongs to the window here that has that end.
    """
    rows = (
        group_lag.where(col("group_id").isin(list(groups)))
        .groupBy(*_PLACE, windows.number(_compute_end()).alias("window"))
        .agg(sql.max_by("lag", "ts").alias("lag"))
        .where(col("lag").isNotNull())
        .orderBy("window")
        .collect()
    )
    by_place: defaultdict[tuple[str, str, int], dict[int, int]] = defaultdict(dict)
    for row in rows:
        # The last window of the table may end after the log.
        number = min(max(0, row["window"]), windows.count - 1)
        by_place[row["group_id"], row["topic"], row["partition"]][number] = row["lag"]
    series: dict[str, list[int | None]] = {name: [None] * windows.count for name in groups}
    for (group_id, _, _), lags in by_place.items():
        values = series[group_id]
        lag: int | None = None
        for number in range(windows.count):
            lag = lags.get(number, lag)
            if lag is not None:
                values[number] = (values[number] or 0) + lag
    return series
