"""The report of a small simulated cluster, beside what is counted without Spark."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
import pytest

from bench.pipeline.simulated_cluster import START_MS, Cluster, write_cluster
from bench.pipeline.simulated_groups import (
    CLASSIC,
    CONSUMER,
    SIMPLE,
    Life,
    make_topics,
    simulate_group,
)
from cli.errors import ExitCode
from pipeline.schema import TIMESTAMP
from pipeline.tables.histories.history_tables import HISTORY_TABLES
from pipeline.tables.histories.rows import Row
from tests.pipeline.logged import compute_rows, golden_table, read_group_events
from tests.support.cli.invoking import invoke_app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.report.figures import Report

CLUSTER = Cluster(groups=80, days=3, records=4_000, seed=3)
DAY_MS = 86_400_000
RETENTION_MS = 7 * DAY_MS
TOP = 3
RENAMED = {
    "partition": "log_partition",
    "topic_partition": "partition",
    "timestamp": "ts",
    "commit_timestamp": "commit_ts",
    "expire_timestamp": "expire_ts",
}
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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    write_cluster(folder, CLUSTER, processes=1)
    return folder


@pytest.fixture(scope="module")
def lives() -> dict[str, Life]:
    topics = make_topics(CLUSTER.groups, CLUSTER.seed)
    found = [
        simulate_group(number, topics[number % len(topics)], CLUSTER.seed, START_MS, CLUSTER.end_ms)
        for number in range(CLUSTER.groups)
    ]
    return {life.group: life for life in found}


@pytest.fixture(scope="module")
def rows(folder: Path) -> dict[str, list[Row]]:
    return compute_rows(read_group_events(golden_table(folder / "log")))


@pytest.fixture(scope="module")
def commits(folder: Path) -> dict[str, dict[int, dict[str, Any]]]:
    """The last commit of each partition, by group."""
    found: defaultdict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in golden_table(folder / "log").to_pylist():
        if row["type_id"] == 1:
            found[row["group_id"]][row["topic_partition"]] = row
    return found


@pytest.fixture(scope="module")
def shown_group(rows: dict[str, list[Row]]) -> str:
    """Of those that can be shown as a whole, the one that passed on most partitions."""
    counts = Counter(row["group_id"] for row in rows["partition_ownership"])
    widths = Counter({(row["group_id"], row["partition"]) for row in rows["partition_ownership"]})
    lanes = Counter(group for group, _ in widths)
    return str(next(g for g, count in counts.most_common() if lanes[g] <= 24 and count <= 400))


@pytest.fixture(scope="module")
def tables(
    folder: Path,
    rows: dict[str, list[Row]],
    lives: dict[str, Life],
    commits: dict[str, dict[int, dict[str, Any]]],
) -> Path:
    """What a run of `tables` writes, without the time that it takes; lag is as it is in the end."""
    log = golden_table(folder / "log")
    records = log.rename_columns([RENAMED.get(name, name) for name in log.column_names])
    is_commit = pc.equal(records.column("type_id"), 1)
    plain = records.filter(is_commit)
    written = {
        name: pa.Table.from_pylist(rows.get(name, []), schema)
        for name, schema in HISTORY_TABLES.items()
    }
    written["records"] = records
    written["offset_commits"] = plain.append_column(
        "effective_offset", plain.column("offset")
    ).append_column("effective_ts", plain.column("ts"))
    end = CLUSTER.end_ms * 1000
    written["group_lag"] = pa.Table.from_pylist(
        [
            {"group_id": group, "topic": lives[group].topic.name, "partition": partition, **values}
            for group, found in commits.items()
            for partition, commit in found.items()
            for lag in (compute_end(lives[group]) - commit["committed_offset"],)
            for values in (
                {"lag": 9 * lag, "status": "STALLED", "ts": end - DAY_MS * 1000},
                {"lag": lag, "lag_seconds": 4.5, "status": "OK", "ts": end - 1},
            )
        ],
        LAG,
    )
    out = folder / "tables"
    for name, table in written.items():
        (out / name).mkdir(parents=True)
        parquet.write_table(table, out / name / "part.parquet")
    counts = {name: table.num_rows for name, table in written.items()}
    manifest = {"tables": counts, "problems": {}, "format": "parquet"}
    (out / "_tables.json").write_text(json.dumps(manifest), encoding="utf-8")
    return out


def compute_end(life: Life) -> int:
    """Where each partition of its topic is at the end of the log."""
    return int((CLUSTER.end_ms - START_MS) / 1000 * life.topic.rate)


@pytest.fixture(scope="module")
def report(spark: SparkSession, folder: Path, tables: Path, shown_group: str) -> Report:
    """What the command has put on its page."""
    from pipeline.report import report_job

    made: list[Report] = []
    write_report = report_job.write_report

    def write(*arguments: Any, **options: Any) -> Report:
        made.append(write_report(*arguments, **options))
        return made[0]

    options = ("--top", str(TOP), "--group", shown_group, "--group", "nobody")
    out = ("--out", folder / "page" / "report.html")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_job, "write_report", write)
        result = invoke_app("pipeline", "report", "--path", tables, *out, *options)
    assert result.exit_code == ExitCode.DONE, result.error
    assert "nobody: no member owned a partition" in result.error
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
    assert [group.rebalances for group in shown] == sorted(counts.values(), reverse=True)[:TOP]
    for group in shown:
        assert sum(group.causes.values()) == sum(group.per_window) == counts[group.group_id]
    assert report.busiest.other_groups == len(counts) - TOP
    assert report.busiest.other_rebalances == counts.total() - sum(g.rebalances for g in shown)
    spent: Counter[str] = Counter()
    for row in rows["rebalances"]:
        spent[row["group_id"]] += row.get("duration_ms") or 0
    longest = [total for _, total in spent.most_common(TOP)]
    assert [group.total_ms for group in report.slowest.groups] == longest


def test_owners_are_those_of_the_table(
    report: Report, rows: dict[str, list[Row]], shown_group: str
) -> None:
    (lanes,) = report.lanes
    assert list(report.unknown_groups) == ["nobody"]
    assert lanes.group_id == shown_group
    stays = Counter(
        (lane.partition, lanes.members[stay.member].member_id, stay.epoch, stay.from_ms, stay.to_ms)
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
        for row in rows["partition_ownership"]
        if row["group_id"] == shown_group
    )
    assert (lanes.other_lanes, lanes.earlier_stays) == (0, 0)
    rebalances = sum(row["group_id"] == shown_group for row in rows["rebalances"])
    assert len(lanes.rebalances_ms) == rebalances


def test_members_have_the_clients_of_their_records(
    report: Report, folder: Path, shown_group: str
) -> None:
    clients = {}
    for row in golden_table(folder / "log").to_pylist():
        if row["group_id"] == shown_group and row["type_id"] == 5 and row["value_json"]:
            clients[row["member_id"]] = json.loads(row["value_json"])["clientId"]
    (lanes,) = report.lanes
    assert len(lanes.members) > 1
    for member in lanes.members:
        assert member.client_id == clients[member.member_id]


def test_the_rebalances_of_a_group_are_those_of_the_table(
    report: Report, rows: dict[str, list[Row]], shown_group: str
) -> None:
    found = {details.group_id: details for details in report.details}
    listed = {group.group_id for group in (*report.busiest.groups, *report.slowest.groups)}
    assert found.keys() == listed | {shown_group}
    for group_id, details in found.items():
        expected = [row for row in rows["rebalances"] if row["group_id"] == group_id]
        assert len(details.rebalances) + details.earlier == len(expected)
        expected = sorted(expected, key=lambda row: -row["offset"])[: len(details.rebalances)]
        for one, row in zip(details.rebalances, expected, strict=True):
            assert one.to_epoch == row["to_epoch"]
            assert one.cause == row["cause"] or row["cause"] is None
            assert (one.member and one.member.member_id) == row["cause_member_id"]
            assert one.partitions_moved == row["partitions_moved"]
            assert one.duration_ms == row.get("duration_ms")
    assert any(one.moved for details in report.details for one in details.rebalances)


def test_the_log_is_audited_and_its_classic_groups_are_judged(
    report: Report, lives: dict[str, Life]
) -> None:
    assert report.audit is not None
    assert (report.audit.counts, report.audit.findings) == ({}, [])
    assert report.readiness is not None
    kinds = Counter(life.kind for life in lives.values())
    assert sum(report.readiness.counts.values()) == kinds[CLASSIC]


def test_groups_are_counted_by_type(report: Report, lives: dict[str, Life]) -> None:
    kinds = Counter(life.kind for life in lives.values())
    assert report.facts.groups == {
        "consumer": kinds[CONSUMER],
        "classic": kinds[CLASSIC],
        "of offsets alone": kinds[SIMPLE],
    }


def test_a_group_is_of_the_type_that_it_is_in_the_end(spark: SparkSession) -> None:
    """A conversion is no rebalance: its last one may have been as a group of the other type."""
    from pipeline.report.rebalance_figures import compute_rankings, make_windows
    from pipeline.report.report_job import find_types

    def make(table: str, *found: Row) -> Any:
        place = {"log_partition": 0, "ts": START_MS * 1000}
        rows = [{**place, "group_id": "g", "offset": n, **row} for n, row in enumerate(found)]
        return spark.createDataFrame(pa.Table.from_pylist(rows, HISTORY_TABLES[table]))

    rebalances = make(
        "rebalances",
        {"protocol": "classic", "to_epoch": 7},
        {"protocol": "classic", "to_epoch": 1, "group_id": "gone"},
    )
    types = find_types(
        make("group_epochs", {"group_epoch": 8}),
        make("classic_generations", {"generation": 7}, {"generation": None}),
    )
    windows = make_windows(START_MS, START_MS + 1, 1_000)
    busiest, _ = compute_rankings(rebalances, types, windows, TOP)
    found = {group.group_id: group.protocol for group in busiest.groups}
    assert found == {"g": "consumer", "gone": "classic"}


def test_offsets_expire_by_kafkas_rules(
    report: Report,
    lives: dict[str, Life],
    rows: dict[str, list[Row]],
    commits: dict[str, dict[int, dict[str, Any]]],
) -> None:
    """Members keep them; a classic group's go when it was empty for long enough."""
    emptied = {
        row["group_id"]: row["state_since"] // 1000
        for row in rows["classic_generations"]
        if not row["members"]
    }
    going: dict[str, list[int]] = {}
    for group, life in lives.items():
        if life.kind == SIMPLE or life.end_ms < CLUSTER.end_ms:
            times = [int(c["commit_timestamp"].timestamp() * 1000) for c in commits[group].values()]
            going[group] = [emptied.get(group, time) + RETENTION_MS for time in times]
    assert {life.kind for group, life in lives.items() if group in going} >= {SIMPLE, CONSUMER}
    expiry = report.expiry
    assert expiry is not None
    end_ms = report.facts.end_ms
    assert end_ms is not None
    times = [time for found in going.values() for time in found]
    assert expiry.offsets == sum(map(len, commits.values()))
    assert sum(expiry.counts) == len(times)
    assert (expiry.overdue, expiry.within_day) == (0, sum(t <= end_ms + DAY_MS for t in times))
    firsts = sorted(min(found) for found in going.values())
    assert [group.first_ms for group in expiry.groups] == firsts[:TOP]
    assert expiry.other_groups == len(going) - TOP
    assert expiry.other_offsets == len(times) - sum(group.offsets for group in expiry.groups)


def test_lag_is_that_of_the_end_and_keeps_the_way(
    report: Report, lives: dict[str, Life], commits: dict[str, dict[int, dict[str, Any]]]
) -> None:
    lags: Counter[str] = Counter()
    for group, life in lives.items():
        for commit in commits[group].values():
            lags[group] += compute_end(life) - commit["committed_offset"]
    assert report.lag is not None
    assert [group.lag for group in report.lag.groups] == sorted(lags.values(), reverse=True)[:TOP]
    assert report.lag.other_groups == len(lags) - TOP
    assert report.lag.other_lag == lags.total() - sum(group.lag for group in report.lag.groups)
    assert report.lag.statuses == {"OK": sum(map(len, commits.values()))}
    for group in report.lag.groups:
        assert (group.per_window[0], group.per_window[-1]) == (None, group.lag)
        assert group.most_lag == 9 * group.lag
        assert (group.lag_s, group.statuses) == (4.5, {"OK": group.partitions})


def test_the_page_is_there_and_nothing_beside_it(report: Report, folder: Path) -> None:
    (page,) = (folder / "page").iterdir()
    assert page.name == "report.html"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_what_is_wrong_is_one_line_and_leaves_the_page(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report.html"
    out.write_text("before", encoding="utf-8")
    missing = invoke_app("pipeline", "report", "--path", tmp_path / "no", "--out", out)
    assert (missing.exit_code, len(missing.error.splitlines())) == (ExitCode.NOT_FOUND, 1)
    a_folder = invoke_app("pipeline", "report", "--path", folder / "log", "--out", tmp_path)
    assert a_folder.exit_code == ExitCode.USAGE
    assert out.read_text(encoding="utf-8") == "before"
