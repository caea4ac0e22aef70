"""Makes a report of a log: tables to figures, figures to one HTML file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit

from pipeline.report.expiry_figures import compute_expiry, find_last_generations
from pipeline.report.figures import LogFacts, Ranking, Report
from pipeline.report.findings_figures import compute_audit, compute_judged
from pipeline.report.group_figures import compute_clients, compute_details, name_members
from pipeline.report.lag_figures import compute_lag
from pipeline.report.owner_figures import compute_lanes
from pipeline.report.page import make_page
from pipeline.report.rebalance_figures import (
    compute_convergence,
    compute_rankings,
    compute_series,
    make_windows,
)
from pipeline.report.scales import compute_window_ms
from pipeline.report.tables_folder import WrittenTables, read_manifest
from pipeline.tables.committed_offsets import compute_latest_offsets
from pipeline.tables.end_offsets_file import EndOffset
from pipeline.tables.histories.group_state import CLASSIC, CONSUMER
from pipeline.tables.histories.history_tables import (
    CLASSIC_GENERATIONS,
    GROUP_EPOCHS,
    PARTITION_OWNERSHIP,
    REBALANCES,
)
from pipeline.tables.tables_job import GROUP_LAG, OFFSET_COMMITS, RECORDS, Tell, write_tables
from pipeline.tables.writing import PARQUET

DEFAULT_TOP = 20
_DEFAULT_LANES = 6
_OFFSETS_ALONE = "of offsets alone"


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What a report shows: the length of each list, and the groups whose owners are shown.

    ``has_audit``: the log is audited for it, which takes as long as the other figures together.
    """

    top: int = DEFAULT_TOP
    groups: Sequence[str] = ()
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    has_audit: bool = True


def write_report(
    spark: SparkSession,
    path: str,
    out: Path,
    options: ReportOptions,
    version: str,
    *,
    tables: str | None = None,
    end_offsets: Sequence[EndOffset] = (),
    tell: Tell = lambda name, rows: None,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """Write the page for a log, or for existing tables.

    ``tables`` is where to keep the tables of a log; by default they are temporary. ``out`` is
    written atomically. ``tell`` hears of each table that was written, ``say`` of what is computed
    next. Raise ``SourceError`` if there is neither a log nor tables at ``path``.
    """
    if read_manifest(spark, path) is not None:
        report = compute_report(WrittenTables(spark, path), path, options, say)
    else:
        with TemporaryDirectory(prefix="muster-report-") as folder:
            written = tables or str(Path(folder) / "tables")
            ends = list(end_offsets)
            write_tables(spark, path, written, file_format=PARQUET, end_offsets=ends, tell=tell)
            report = compute_report(WrittenTables(spark, written), path, options, say)
    page = make_page(report, datetime.now(UTC), version)
    out.parent.mkdir(parents=True, exist_ok=True)
    writing = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        writing.write_text(page, encoding="utf-8")
        writing.replace(out)
    finally:
        writing.unlink(missing_ok=True)
    return report


def compute_report(
    tables: WrittenTables,
    path: str,
    options: ReportOptions,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """All figures of a folder of tables."""
    say("figures of rebalances")
    records = tables.read(RECORDS)
    span = records.agg(
        sql.unix_millis(sql.min("ts")).alias("start"), sql.unix_millis(sql.max("ts")).alias("end")
    ).first()
    assert span is not None
    start_ms, end_ms = span["start"], span["end"]
    window_ms = compute_window_ms(start_ms or 0, end_ms or 0)
    windows = make_windows(start_ms or 0, end_ms or 0, window_ms)
    rebalances = tables.read(REBALANCES).persist()
    generations = tables.read(CLASSIC_GENERATIONS)
    commits = tables.read(OFFSET_COMMITS)
    latest = compute_latest_offsets(commits).persist()
    types = find_types(tables.read(GROUP_EPOCHS), generations).persist()
    busiest, slowest = compute_rankings(rebalances, types, windows, options.top)
    series = compute_series(rebalances, windows)
    convergence = compute_convergence(rebalances, windows)
    say("groups, one by one")
    worst = [ranking.groups[0].group_id for ranking in (slowest, busiest) if ranking.groups]
    ranked = [group.group_id for group in (*busiest.groups, *slowest.groups)]
    shown = list(dict.fromkeys([*options.groups, *worst, *ranked]))
    owned = list(dict.fromkeys(options.groups)) or shown[:_DEFAULT_LANES]
    ownership = tables.read(PARTITION_OWNERSHIP)
    clients = compute_clients(records, generations, shown)
    lanes = compute_lanes(ownership, rebalances, owned, end_ms or 0)
    details = compute_details(rebalances, ownership, shown, clients)
    say("lag and expiry")
    lag = compute_lag(tables.read(GROUP_LAG), latest, windows, options.top)
    expiry = compute_expiry(
        latest, records, generations, end_ms or 0, options.retention_ms, options.top
    )
    facts = LogFacts(
        path,
        start_ms,
        end_ms,
        tables.counts[RECORDS],
        tables.counts[OFFSET_COMMITS],
        _count_groups(types, latest),
        tables.problems,
    )
    say("readiness of classic groups")
    readiness = compute_judged(records, options.top)
    audit = None
    if options.has_audit:
        say("audit")
        audit = compute_audit(records, commits, options.retention_ms, options.top)
    for kept in (rebalances, latest, types):
        kept.unpersist()
    known = {group.group_id for group in lanes}
    return Report(
        facts,
        series,
        convergence,
        _name_ranking(busiest, clients),
        _name_ranking(slowest, clients),
        name_members(lanes, clients),
        lag,
        expiry,
        details,
        readiness,
        audit,
        [name for name in owned if name not in known] if options.groups else [],
    )


def _name_ranking(ranking: Ranking, clients: Mapping[tuple[str, str], str]) -> Ranking:
    return replace(ranking, groups=name_members(ranking.groups, clients))


def find_types(epochs: DataFrame, generations: DataFrame) -> DataFrame:
    """The ``group_type`` of each group that exists at the end.

    Share and streams groups are not included, because they have no table.
    """
    last = epochs.groupBy("group_id").agg(
        sql.max_by(sql.struct("group_epoch"), "offset").alias("last")
    )
    consumer = last.where(col("last.group_epoch").isNotNull()).select("group_id")
    classic = find_last_generations(generations).select("group_id")
    return consumer.withColumn("group_type", lit(CONSUMER)).union(
        classic.withColumn("group_type", lit(CLASSIC))
    )


def _count_groups(types: DataFrame, latest: DataFrame) -> dict[str, int]:
    """Groups that exist at the end, by type."""
    found = {
        row["group_type"]: row["count"] for row in types.groupBy("group_type").count().collect()
    }
    alone = latest.select("group_id").distinct().join(types, "group_id", "left_anti")
    counts = {
        CONSUMER: found.get(CONSUMER, 0),
        CLASSIC: found.get(CLASSIC, 0),
        _OFFSETS_ALONE: alone.count(),
    }
    return {name: count for name, count in counts.items() if count}
