"""The page lists missed targets, rows behind Kafka, and failures at its top."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.figures import Row, Section, Target
from bench.pipeline.results_page import include_pages
from bench.plan import FULL
from bench.reasons import REASONS, find_reason
from bench.report import format_page, format_terminal, write_results

VERSIONS = "kafka muster java go python numpy uvloop rocksdict kio grpcio protobuf"
MACHINE: dict[str, Any] = {
    "date": "2030-01-02 03:04 UTC",
    "cpu": "Some CPU",
    "cores": 8,
    "cores_used": 2,
    "memory_gib": 16.0,
    "kernel": "Linux 1.2",
    "file_system": "ext4",
    "fsync_ms": {"p50": 0.1, "p99": 0.2},
    "load_before": 0.1,
    "versions": dict.fromkeys(VERSIONS.split(), "1.0"),
}
REACHED = Row("good: rate", "/s", (10.0,), (30.0,), Target(min_ratio=2), more_is_better=True)
MISSED = Row("slow: rate", "/s", (10.0, 12.0, 11.0), (5.0,), Target(min_ratio=1), True)
WORSE = Row("late: p99", "ms", (1.0,), (2.0,))
SECTIONS = [
    Section("one", "One", "How one is done.", (REACHED, MISSED, WORSE), {"Kafka": [{"rate": 10}]}),
    Section("two", "Two", "How two is done.", failure="failed: it did not start"),
]


def get_behind(page: str) -> str:
    return page.split("## Where Muster is behind")[1].split("##")[0]


def test_the_page_says_where_muster_is_behind() -> None:
    behind = get_behind(format_page(MACHINE, SECTIONS))
    assert "Two: failed: it did not start" in behind
    assert "slow: rate: 5.00/s, the target is ≥ 1 × (Kafka: 11.0/s)" in behind
    assert "late: p99: 2.00 ms, Kafka 1.00 ms" in behind
    assert "good" not in behind


def test_the_page_has_every_row_with_its_verdict() -> None:
    page = format_page(MACHINE, SECTIONS)
    assert "| good: rate | 10.0/s | 30.0/s | 3.00 × | ≥ 2 × | yes |" in page
    assert "| slow: rate | 11.0/s (10.0 – 12.0) | 5.00/s | 0.45 × | ≥ 1 × | **no** |" in page
    assert "all processes are kept on the same 2 of them" in page


def test_a_row_that_is_behind_says_why() -> None:
    row = Row("joins: rate", "/s", (10.0,), (5.0,), more_is_better=True)
    page = format_page(MACHINE, [Section("one", "One", "How.", (row,))])
    assert f"Reason: {find_reason(row.what)}." in get_behind(page)
    ahead = replace(row, muster=(20.0,))
    page = format_page(MACHINE, [Section("one", "One", "How.", (ahead,))])
    assert "Reason" not in get_behind(page)


def test_the_reason_of_the_most_exact_beginning_counts() -> None:
    for number, (begin, reason) in enumerate(REASONS):
        assert find_reason(f"{begin}: rate") == reason
        assert not any(begin.startswith(other) for other, _ in REASONS[:number])
    assert find_reason("what nobody has profiled: rate") is None


def test_nothing_behind_is_said_too() -> None:
    page = format_page(MACHINE, [Section("one", "One", "How.", (REACHED,))])
    assert get_behind(page).strip() == "Nowhere in this run."


def test_a_disk_that_is_memory_is_no_fair_figure() -> None:
    page = format_page({**MACHINE, "file_system": "tmpfs"}, SECTIONS)
    assert "not a fair figure" in page


def test_results_are_stored_with_every_run(tmp_path: Path) -> None:
    results, page = tmp_path / "new" / "latest.json", tmp_path / "RESULTS.md"
    write_results(FULL, MACHINE, SECTIONS, results, page)
    stored = json.loads(results.read_text(encoding="utf-8"))
    assert stored["machine"] == MACHINE
    assert stored["scenarios"][0]["runs"] == {"Kafka": [{"rate": 10}]}
    assert stored["scenarios"][0]["rows"][1]["reached"] is False
    assert stored["scenarios"][1]["failure"] == "failed: it did not start"
    assert page.read_text(encoding="utf-8") == include_pages(format_page(MACHINE, SECTIONS))


def test_the_terminal_shows_failures_and_rows() -> None:
    shown = format_terminal(SECTIONS)
    assert "it did not start" in shown
    assert "slow: rate" in shown
