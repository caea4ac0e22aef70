"""The figures of a report beside the rows that they are of, counted without Spark."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from cli.errors import ExitCode
from pipeline.schema import TIMESTAMP
from pipeline.tables.history_tables import HISTORY_TABLES
from pipeline.tables.rows import Row
from tests.golden.kafka_log import final_state
from tests.pipeline.logged import compute_rows, golden_table, read_group_events
from tests.unit.cli.invoking import invoke_app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.report.figures import Report

LIVE = "o15-updown-range"
LAGGING = "o08-consumer-uniform"
RENAMED = {
    "partition": "log_partition",
    "topic_partition": "partition",
    "timestamp": "ts",
    "commit_timestamp": "commit_ts",
    "expire_timestamp": "expire_ts",
}
RETENTION = timedelta(days=7)
COMMITS = pa.schema(
    [
        *[(name, pa.string()) for name in ("group_id", "topic", "transaction")],
        ("partition", pa.int32()),
        *[(name, pa.int64()) for name in ("committed_offset", "offset", "effective_offset")],
        *[(name, TIMESTAMP) for name in ("commit_ts", "expire_ts", "ts", "effective_ts")],
        ("is_tombstone", pa.bool_()),
        ("log_partition", pa.int32()),
    ]
)
LAG = pa.schema(
    [
        *[(name, pa.string()) for name in ("group_id", "topic", "status")],
        ("partition", pa.int32()),
        ("lag", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("ts", TIMESTAMP),
    ]
)


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    return compute_rows(read_group_events(golden_table()))


@pytest.fixture(scope="module")
def commits() -> list[dict[str, Any]]:
    """Plain commits and deletions; those of transactions are left out here."""
    found = golden_table().rename_columns([RENAMED.get(n, n) for n in golden_table().column_names])
    return [
        {**row, "effective_offset": row["offset"], "effective_ts": row["ts"]}
        for row in found.to_pylist()
        if row["type_id"] in (0, 1) and not row["is_transactional"]
    ]


@pytest.fixture(scope="module")
def tables(
    tmp_path_factory: pytest.TempPathFactory,
    rows: dict[str, list[Row]],
    commits: list[dict[str, Any]],
) -> Path:
    """What a run of tables writes, without the minute that it takes."""
    out = tmp_path_factory.mktemp("tables")
    records = golden_table()
    places = {(c["topic"], c["partition"]) for c in commits if c["group_id"] == LAGGING}
    (topic, partition) = min(places)
    end = max(records.column("timestamp").to_pylist())
    lag = [
        {"group_id": LAGGING, "topic": topic, "partition": partition, "ts": ts, **rest}
        for ts, rest in (
            (end - timedelta(seconds=30), {"lag": 900, "lag_seconds": 9.5, "status": "OK"}),
            (end, {"lag": 400, "lag_seconds": 4.5, "status": "OK"}),
        )
    ]
    written = {
        name: pa.Table.from_pylist(rows.get(name, []), s) for name, s in HISTORY_TABLES.items()
    }
    written["records"] = records.rename_columns([RENAMED.get(n, n) for n in records.column_names])
    written["offset_commits"] = pa.Table.from_pylist(commits, COMMITS)
    written["group_lag"] = pa.Table.from_pylist(lag, LAG)
    for name, table in written.items():
        (out / name).mkdir()
        parquet.write_table(table, out / name / "part.parquet")
    counts = {name: table.num_rows for name, table in written.items()}
    manifest = {"tables": counts, "problems": {}, "format": "parquet"}
    (out / "_tables.json").write_text(json.dumps(manifest), encoding="utf-8")
    return out


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page") / "new" / "report.html"


@pytest.fixture(scope="module")
def report(spark: SparkSession, tables: Path, page: Path) -> Report:
    """What the command has put on its page."""
    from pipeline.report import job

    made: list[Report] = []
    write_report = job.write_report

    def write(*arguments: Any, **options: Any) -> Report:
        made.append(write_report(*arguments, **options))
        return made[0]

    shown = ("--top", "3", "--group", LIVE, "--group", "nobody")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "write_report", write)
        result = invoke_app("pipeline", "report", "--path", tables, "--out", page, *shown)
    assert result.exit_code == ExitCode.DONE, result.error
    assert "nobody: nobody held anything" in result.error
    return made[0]


def test_rebalances_are_all_there_once(report: Report, rows: dict[str, list[Row]]) -> None:
    rebalances = rows["rebalances"]
    assert report.series.total == len(rebalances)
    causes = Counter(row["cause"] or "not_in_the_records" for row in rebalances)
    assert {name: sum(counts) for name, counts in report.series.by_cause.items()} == causes
    took = [row["duration_ms"] for row in rebalances if row.get("duration_ms") is not None]
    convergence = report.convergence
    assert sum(convergence.counts) == len(took)
    assert convergence.percentiles_ms["max"] == max(took)
    assert convergence.percentiles_ms["p50"] == statistics.median_low(took)
    consumer = [row for row in rebalances if row["protocol"] == "consumer"]
    assert convergence.never == sum(row["converged_at"] is None for row in consumer)
    assert convergence.untimed == len(rebalances) - len(consumer)
    assert sum(p50 is not None for p50 in convergence.p50_ms) > 1


def test_the_worst_are_the_worst_and_the_rest_is_counted(
    report: Report, rows: dict[str, list[Row]]
) -> None:
    counts = Counter(row["group_id"] for row in rows["rebalances"])
    shown = report.busiest.groups
    assert [group.rebalances for group in shown] == sorted(counts.values(), reverse=True)[:3]
    for group in shown:
        assert sum(group.causes.values()) == sum(group.per_window) == counts[group.group_id]
    assert report.busiest.other_groups == len(counts) - 3
    assert report.busiest.other_rebalances == counts.total() - sum(g.rebalances for g in shown)
    spent: Counter[str] = Counter()
    for row in rows["rebalances"]:
        spent[row["group_id"]] += row.get("duration_ms") or 0
    assert [group.total_ms for group in report.slowest.groups] == [
        total for _, total in spent.most_common(3)
    ]


def test_owners_are_those_of_the_table(report: Report, rows: dict[str, list[Row]]) -> None:
    (lanes,) = report.lanes
    assert list(report.unknown_groups) == ["nobody"]
    assert lanes.group_id == LIVE
    owned = [row for row in rows["partition_ownership"] if row["group_id"] == LIVE]
    stays = Counter(
        (lane.partition, lanes.members[stay.member], stay.epoch, stay.from_ms, stay.to_ms)
        for lane in lanes.lanes
        for stay in lane.stays
    )
    assert stays == Counter(
        (
            row["partition"],
            row["member_id"],
            row["assignment_epoch"],
            row["valid_from"] // 1000,
            None if row["valid_to"] is None else row["valid_to"] // 1000,
        )
        for row in owned
    )
    assert (lanes.other_lanes, lanes.earlier_stays) == (0, 0)
    assert len(lanes.rebalances_ms) == sum(r["group_id"] == LIVE for r in rows["rebalances"])


def test_groups_are_those_of_the_broker(report: Report) -> None:
    groups = [
        group
        for group in final_state()["groups"]
        if group["listed"] is not None and group["listed"]["type"] in ("consumer", "classic")
    ]
    types = Counter(group["listed"]["type"] for group in groups)
    counts = report.facts.groups
    assert counts["consumer"] == types["consumer"]
    assert counts["classic"] + counts["of offsets alone"] == types["classic"]


def test_offsets_expire_by_kafkas_rules(report: Report, commits: list[dict[str, Any]]) -> None:
    """The broker has no members any more, so every offset goes when its time is over."""
    latest: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in sorted(commits, key=lambda row: (row["log_partition"], row["offset"])):
        latest[row["group_id"], row["topic"], row["partition"]] = row
    there = [row for row in latest.values() if not row["is_tombstone"]]
    expiry = report.expiry
    assert expiry is not None
    assert expiry.offsets == len(there)
    members = {"o15-updown-range"} & {row["group_id"] for row in there}
    assert sum(expiry.counts) + expiry.overdue <= len(there)
    assert sum(expiry.counts) + expiry.overdue >= len(there) - len(members) * 50
    first = expiry.groups[0]
    assert expiry.groups == sorted(expiry.groups, key=lambda group: group.first_ms)
    own = [row for row in there if row["group_id"] == first.group_id]
    assert first.offsets == len(own)
    assert first.first_ms >= to_ms(min(row["commit_ts"] for row in own) + RETENTION)


def test_lag_is_of_the_end_and_keeps_the_way(report: Report) -> None:
    assert report.lag is not None
    (group,) = report.lag.groups
    assert (group.group_id, group.lag, group.lag_s, group.most_lag) == (LAGGING, 400, 4.5, 900)
    known = [value for value in group.per_window if value is not None]
    assert (known[0], known[-1]) == (900, 400)
    assert (report.lag.other_groups, report.lag.other_lag) == (0, 0)


def test_the_page_is_there_and_nothing_beside_it(report: Report, page: Path) -> None:
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [path.name for path in page.parent.iterdir()] == [page.name]


def test_what_is_wrong_is_one_line_and_leaves_the_page(
    spark: SparkSession, tables: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report.html"
    out.write_text("before", encoding="utf-8")
    missing = invoke_app("pipeline", "report", "--path", tmp_path / "no", "--out", out)
    assert (missing.exit_code, len(missing.error.splitlines())) == (ExitCode.NOT_FOUND, 1)
    folder = invoke_app("pipeline", "report", "--path", tables, "--out", tmp_path)
    assert folder.exit_code == ExitCode.USAGE
    assert out.read_text(encoding="utf-8") == "before"


def to_ms(time: datetime) -> int:
    return int(time.astimezone(UTC).timestamp() * 1000)
