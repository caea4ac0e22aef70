"""The rows in front of a cluster: which sides they compare, and what has a goal."""

from pathlib import Path

import pytest

from bench.figures import Json, Row, Section
from bench.pipeline.results_page import include_pages
from bench.report import format_behind, format_section
from bench.upstream.__main__ import SCENARIOS, format_page, parse
from bench.upstream.moves import JOIN_HERE, REBALANCE, RELEASE, TAKE, make_move_rows
from bench.upstream.rates import (
    CARRIERS,
    CLUSTER,
    KINDS,
    RELAYED,
    make_commit_rows,
    make_relay_rows,
)
from tests.unit.bench.test_report import MACHINE


def make_report(rate: float, p50: float) -> Json:
    latency = {"p50": p50, "p99": 10 * p50}
    return {"rate": rate, "server_cpu_us_per_op": 5.0, "latency_ms": latency}


def find(rows: list[Row] | tuple[Row, ...], what: str) -> Row:
    (row,) = (row for row in rows if row.what == what)
    return row


def test_many_members_have_a_goal_for_the_rate_and_few_for_the_latency() -> None:
    cluster, through = [make_report(100, 1.0)], [make_report(149, 1.9)]
    many = make_commit_rows(1000, cluster, through, is_crowd=True)
    few = make_commit_rows(1, cluster, through, is_crowd=False)
    assert find(many, "commits in front, 1,000 members: rate").is_reached is False
    assert find(many, "commits in front, 1,000 members: latency p50").is_reached is None
    assert find(few, "commits in front, 1 member: rate").is_reached is None
    assert find(few, "commits in front, 1 member: latency p50").is_reached is True


@pytest.mark.parametrize(("p50", "is_reached"), [(0.39, True), (0.42, False)])
def test_a_relay_may_cost_a_third_of_a_millisecond(p50: float, is_reached: bool) -> None:
    runs = {f"{CLUSTER}, {kind}": [make_report(1, 0.1)] for kind in KINDS}
    runs |= {f"{RELAYED}, {kind}": [make_report(1, p50)] for kind in KINDS}
    for kind in CARRIERS:
        for side, rate in ((CLUSTER, 800.0), (RELAYED, 400.0)):
            runs[f"{side}, {kind}"] = [{"mb_per_second": rate, "server_cpu_us_per_op": 1.0}]
    rows = make_relay_rows(runs)
    assert find(rows, "relayed Metadata: latency p50").is_reached is is_reached
    produced = find(rows, "relayed produce of 1 MiB")
    assert produced.ratio == 0.5
    assert produced.is_behind


def test_no_member_may_stand_still_for_more_than_two_seconds() -> None:
    pauses = {REBALANCE: 3100.0, TAKE: 1999.0, JOIN_HERE: 2500.0, RELEASE: 2001.0}
    changes = {
        change: [{"longest_pause_ms": longest, "median_pause_ms": 100.0}]
        for change, longest in pauses.items()
    }
    rows = make_move_rows(changes, 100)
    begin, end = "100 members", "longest pause of a member"
    assert find(rows, f"takeover, {begin}: {end}").is_reached is True
    assert find(rows, f"release, {begin}: {end}").is_reached is False
    assert find(rows, f"one joins at Muster, {begin}: {end}").is_reached is None
    assert all(row.kafka_median in (3100.0, 100.0) for row in rows)


def test_a_table_names_its_own_sides() -> None:
    section = Section(
        "one", "One", "How.", (Row("late: p50", "ms", (1.0,), (2.0,)),), sides=("cluster", "relay")
    )
    assert "|  | cluster | relay | relay / cluster | target | reached |" in format_section(section)
    assert format_behind([section]) == "- late: p50: 2.00 ms, cluster 1.00 ms"


def test_the_page_is_included_before_the_pipelines(tmp_path: Path) -> None:
    pages = tmp_path / "upstream.md", tmp_path / "pipeline.md"
    pages[0].write_text(format_page(MACHINE, [Section("one", "One", "How.", failure="failed: it")]))
    pages[1].write_text("# The pipeline: decoding\n\nfast\n")
    whole = include_pages("# Muster beside Kafka\n", pages)
    assert whole.index("## In front of a cluster") < whole.index("### One") < whole.index("fast")
    assert include_pages(whole, pages) == whole


def test_only_known_scenarios_can_be_asked_for() -> None:
    assert parse(["--quick", "--only", "moves"]).only == ["moves"]
    assert set(SCENARIOS) == {"heartbeats", "commits", "relays", "convergence", "moves"}
    with pytest.raises(SystemExit):
        parse(["--only", "joins"])
