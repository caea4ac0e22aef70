"""Figures of rebalances, from the table ``rebalances``."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit, when

from pipeline.report.figures import (
    UNKNOWN_CAUSE,
    BusyGroup,
    Convergence,
    Member,
    Ranking,
    RebalanceSeries,
)
from pipeline.tables.histories.group_state import CLASSIC, CONSUMER
from pipeline.tables.histories.rebalances import CAUSES

_STEPS_OF_TEN = 5
"""Bars of the histogram per power of ten."""

_SPARK_POINTS = 32


@dataclass(frozen=True, slots=True)
class Windows:
    """``count`` windows of ``window_ms`` from ``start_ms`` (wall ms)."""

    start_ms: int
    window_ms: int
    count: int

    @property
    def end_ms(self) -> int:
        """The end of the last window."""
        return self.start_ms + self.count * self.window_ms

    def number(self, time: Column) -> Column:
        """The index of the window that contains a time, as a Spark column."""
        since = sql.unix_millis(time) - lit(self.start_ms)
        return sql.floor(since / lit(self.window_ms)).cast("int")


def make_windows(start_ms: int, end_ms: int, window_ms: int) -> Windows:
    """Windows with round start times that cover the range from start to end."""
    first = start_ms // window_ms * window_ms
    return Windows(first, window_ms, (end_ms - first) // window_ms + 1)


def compute_series(rebalances: DataFrame, windows: Windows) -> RebalanceSeries:
    """Rebalances by cause and window, for causes that occur."""
    rows = (
        rebalances.groupBy(windows.number(col("ts")).alias("window"), _cause())
        .count()
        .where(col("window").isNotNull())
        .collect()
    )
    by_cause: defaultdict[str, list[int]] = defaultdict(lambda: [0] * windows.count)
    for row in rows:
        by_cause[row["cause"]][row["window"]] += row["count"]
    ordered = {name: by_cause[name] for name in (*CAUSES, UNKNOWN_CAUSE) if name in by_cause}
    return RebalanceSeries(windows.start_ms, windows.window_ms, ordered)


def compute_convergence(rebalances: DataFrame, windows: Windows) -> Convergence:
    """The distribution of convergence times, with percentiles over all and per window."""
    took = when(col("duration_ms") < 1, 1).otherwise(col("duration_ms"))
    timed = rebalances.where(col("duration_ms").isNotNull())
    steps = sql.floor(sql.log10(took) * _STEPS_OF_TEN + 1e-9).cast("int")
    found = {
        row["step"]: row["count"] for row in timed.groupBy(steps.alias("step")).count().collect()
    }
    edges, counts = _fill_steps(found)
    whole = rebalances.agg(
        *_percentiles(),
        sql.max("duration_ms").alias("max"),
        sql.count(when(_never(), 1)).alias("never"),
        sql.count(when(col("protocol") == CLASSIC, 1)).alias("untimed"),
    ).first()
    assert whole is not None
    by_window = {
        row["window"]: row
        for row in timed.groupBy(windows.number(col("started_at")).alias("window"))
        .agg(*_percentiles())
        .collect()
    }
    names = ("p50", "p95", "p99", "max")
    return Convergence(
        edges,
        counts,
        {} if whole["p50"] is None else {name: whole[name] for name in names},
        windows.start_ms,
        windows.window_ms,
        [_get(by_window.get(number), "p50") for number in range(windows.count)],
        [_get(by_window.get(number), "p99") for number in range(windows.count)],
        whole["never"],
        whole["untimed"],
    )


def _fill_steps(found: dict[int, int]) -> tuple[list[float], list[int]]:
    first, last = min(found, default=0), max(found, default=0)
    # Whole powers of ten, so that both ends have a tick.
    first = first // _STEPS_OF_TEN * _STEPS_OF_TEN
    last = math.ceil((last + 1) / _STEPS_OF_TEN) * _STEPS_OF_TEN
    numbers = range(first, last + 1)
    edges = [10.0 ** (number / _STEPS_OF_TEN) for number in numbers]
    return edges, [found.get(number, 0) for number in numbers[:-1]]


def _percentiles() -> list[Column]:
    return [
        sql.percentile_approx("duration_ms", part / 100).alias(f"p{part}") for part in (50, 95, 99)
    ]


def _never() -> Column:
    return (col("protocol") == CONSUMER) & col("converged_at").isNull()


def _cause() -> Column:
    return sql.coalesce("cause", lit(UNKNOWN_CAUSE)).alias("cause")


def _get(row: Any, name: str) -> int | None:
    return None if row is None else row[name]


# ------------------------------------------------------------------------------ worst groups


def compute_rankings(
    rebalances: DataFrame, types: DataFrame, windows: Windows, top: int
) -> tuple[Ranking, Ranking]:
    """The groups with the most rebalances, and those with the longest total convergence time.

    ``types`` has the type of each group that exists at the end; for others the last rebalance gives
    it.
    """
    groups = (
        rebalances.groupBy("group_id")
        .agg(
            sql.max_by("protocol", "offset").alias("last_protocol"),
            sql.count("*").alias("rebalances"),
            sql.count(when(_never(), 1)).alias("never"),
            sql.percentile_approx("duration_ms", 0.5).alias("p50"),
            sql.max("duration_ms").alias("longest"),
            sql.coalesce(sql.sum("duration_ms"), lit(0)).alias("total"),
            sql.coalesce(sql.sum("partitions_moved"), lit(0)).alias("moved"),
        )
        .join(types, "group_id", "left")
        .withColumn("protocol", sql.coalesce("group_type", "last_protocol"))
        .persist()
    )
    whole = groups.agg(
        sql.count("*").alias("groups"),
        sql.sum("rebalances").alias("rebalances"),
        sql.count("longest").alias("timed"),
        sql.sum(when(col("longest").isNotNull(), col("rebalances"))).alias("timed_rebalances"),
    ).first()
    assert whole is not None
    often = groups.orderBy(sql.desc("rebalances"), sql.desc("total"), "group_id").limit(top)
    long = groups.where(col("longest").isNotNull())
    long = long.orderBy(sql.desc("total"), sql.desc("rebalances"), "group_id").limit(top)
    busiest, slowest = often.collect(), long.collect()
    groups.unpersist()
    details = _read_details(rebalances, windows, {row["group_id"] for row in busiest + slowest})
    return (
        _rank(busiest, details, whole["groups"], whole["rebalances"]),
        _rank(slowest, details, whole["timed"], whole["timed_rebalances"]),
    )


@dataclass(slots=True)
class _Details:
    causes: Counter[str]
    members: Counter[str]
    per_window: list[int]


def _read_details(rebalances: DataFrame, windows: Windows, groups: set[str]) -> dict[str, _Details]:
    if not groups:
        return {}
    points = min(_SPARK_POINTS, windows.count)
    point = sql.floor(windows.number(col("ts")) * points / windows.count).cast("int")
    rows = (
        rebalances.where(col("group_id").isin(sorted(groups)))
        .groupBy("group_id", _cause(), "cause_member_id", point.alias("point"))
        .count()
        .collect()
    )
    found = {group: _Details(Counter(), Counter(), [0] * points) for group in groups}
    for row in rows:
        details = found[row["group_id"]]
        details.causes[row["cause"]] += row["count"]
        if row["cause_member_id"] is not None:
            details.members[row["cause_member_id"]] += row["count"]
        if row["point"] is not None:
            details.per_window[row["point"]] += row["count"]
    return found


def _rank(
    rows: Sequence[Any], details: dict[str, _Details], groups: int, rebalances: int | None
) -> Ranking:
    shown = []
    for row in rows:
        known = details[row["group_id"]]
        members = sorted(known.members.items(), key=lambda item: (-item[1], item[0]))
        worst, count = members[0] if members else (None, 0)
        shown.append(
            BusyGroup(
                row["group_id"],
                row["protocol"],
                row["rebalances"],
                row["never"],
                row["p50"],
                row["longest"],
                row["total"],
                row["moved"],
                known.causes,
                None if worst is None else Member(worst),
                count,
                known.per_window,
            )
        )
    others = (rebalances or 0) - sum(row["rebalances"] for row in rows)
    return Ranking(shown, groups - len(rows), others)
