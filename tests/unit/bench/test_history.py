"""The history's files, and which run a new one is compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import history
from bench.figures import Row, Section
from bench.history import (
    SAME,
    HistoryError,
    Run,
    find_commit,
    find_earlier,
    find_run,
    format_history,
    format_runs,
    main,
    make_run,
    read_history,
    record,
)
from bench.runs import note_in_history

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
    "versions": {"muster": "1.0 at abc1234", "kafka": "4.3.0", "python": "3.11.2"},
}
FAST = Row("joins: rate", "/s", (100, 101, 102), (200, 201, 202), more_is_better=True)
SLOW = replace(FAST, muster=(150.0, 151.0, 152.0))
FAILED = Section("idle", "Idle", "How.", failure="failed: it did not start")


def make(day: int, row: Row = FAST, *, commit: str = "abc1234", **machine: Any) -> Run:
    changed = {
        **MACHINE,
        "date": f"2030-01-{day:02} 03:04 UTC",
        "versions": {**MACHINE["versions"], "muster": f"1.0 at {commit}"},
        **machine,
    }
    return make_run(changed, [Section("joins", "Joins", "How.", (row,))])


def test_a_run_is_one_file_that_is_read_again(tmp_path: Path) -> None:
    run = make_run(MACHINE, [Section("joins", "Joins", "How.", (FAST, SLOW)), FAILED])
    path = record(run, tmp_path)
    assert path.name == "2030-01-02T0304Z-abc1234.json"
    assert list(tmp_path.iterdir()) == [path]
    assert read_history(tmp_path) == [run]
    assert run.failures == ("idle: failed: it did not start",)


def test_the_history_is_in_the_order_of_time_without_other_results(tmp_path: Path) -> None:
    (tmp_path / "latest.json").write_text("{}", encoding="utf-8")
    for day in (3, 1, 2):
        record(make(day, commit=f"{9 - day}aaaaaa"), tmp_path)
    assert [run.machine["date"][:10] for run in read_history(tmp_path)] == [
        "2030-01-01", "2030-01-02", "2030-01-03",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"rows": [{}]}',
        '{"commit": "x", "machine": {}, "rows": [], "failures": []}',
        '{"commit": "x", "machine": [], "rows": [], "failures": []}',
    ],
)
def test_a_file_that_is_no_run_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "2030-01-02T0304Z-x.json").write_text(text, encoding="utf-8")
    with pytest.raises(HistoryError, match=r"2030-01-02T0304Z-x\.json is not a run"):
        read_history(tmp_path)


@pytest.mark.parametrize(
    ("version", "commit"),
    [
        ("0.1.0 at abc1234", "abc1234"),
        ("0.1.0 at abc1234, with changes", "abc1234-changed"),
        ("0.1.0", "unknown"),
    ],
)
def test_a_run_is_named_by_its_commit(version: str, commit: str) -> None:
    assert find_commit(version) == commit


def test_the_newest_earlier_run_on_the_same_machine_counts() -> None:
    old, newer, elsewhere, now, later = (
        make(1), make(2), make(3, kernel="Linux 9"), make(4), make(5),
    )  # fmt: skip
    assert find_earlier([later, elsewhere, old, now, newer], now) is newer


def test_what_differs_from_hour_to_hour_is_not_another_machine() -> None:
    before = make(1, load_before=1.9, fsync_ms={"p50": 0.3, "p99": 0.4})
    assert "another machine" not in format_history(make(2), [before])


@pytest.mark.parametrize("what", SAME)
def test_another_machine_is_said(what: str) -> None:
    before = make(1)
    before.machine[what] = "other"
    shown = format_history(make(2), [before])
    assert f"another machine: {what} other → {MACHINE[what]}. Only ratios" in shown


def test_without_an_earlier_run_it_says_so() -> None:
    run = make(1)
    assert "the history has no earlier run" in format_history(run, [run, make(2)])


def test_changed_rows_are_printed_with_both_ranges() -> None:
    shown = format_runs(make(1), make(2, SLOW))
    assert "  worse   joins: rate: Muster / Kafka 1.99 × (1.96 – 2.02) → 1.50 ×" in shown
    assert "  better  joins: rate" in format_runs(make(1, SLOW), make(2))
    assert "none of 1 rows changed" in format_runs(make(1), make(2))


def test_versions_failures_and_the_disk_are_printed() -> None:
    before, after = make(1), make(2, fsync_ms={"p50": 0.5, "p99": 1})
    after = replace(after, failures=("idle: failed",))
    after.machine["versions"]["python"] = "3.12.0"
    shown = format_runs(before, after)
    assert "fdatasync 0.1 ms → 0.5 ms" in shown
    assert "other versions: python 3.11.2 → 3.12.0" in shown
    assert "failed now: idle: failed" in shown


def test_a_run_is_found_by_commit_or_name() -> None:
    runs = [make(1, commit="abc1"), make(2, commit="abc1"), make(3, commit="fff2")]
    assert find_run(runs, "abc1") is runs[1]
    assert find_run(runs, "2030-01-01") is runs[0]
    with pytest.raises(HistoryError, match="no run 'nnn' in the history"):
        find_run(runs, "nnn")


def test_a_commit_is_not_the_run_of_it_with_changes() -> None:
    runs = [make(1, commit="abc1"), make(2, commit="abc1, with changes")]
    assert find_run(runs, "abc1") is runs[0]
    assert find_run(runs, "abc1-changed") is runs[1]
    assert find_run(runs, "abc") is runs[1]


def test_the_command_compares_any_two_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(history, "FOLDER", tmp_path)
    assert main([]) == 1
    assert "the history is empty" in capsys.readouterr().err
    for day, row in ((1, SLOW), (2, FAST), (3, FAST)):
        record(make(day, row), tmp_path)
    assert main([]) == 0
    assert "2030-01-02T0304Z-abc1234 → 2030-01-03T0304Z-abc1234" in capsys.readouterr().out
    assert main(["2030-01-02", "2030-01-01"]) == 0
    assert "worse   joins: rate" in capsys.readouterr().out
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.count("\n") == 3
    assert main(["nnn"]) == 1
    capsys.readouterr()
    assert main(["2030-01-03"]) == 1
    assert "which would be compared with itself" in capsys.readouterr().err


def test_a_full_run_is_recorded_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sections = [Section("joins", "Joins", "How.", (SLOW,))]
    record(make(1), tmp_path)
    note_in_history("bench", MACHINE, sections, tmp_path)
    shown = capsys.readouterr().out
    assert "recorded as 2030-01-02T0304Z-abc1234.json" in shown
    assert "worse   joins: rate" in shown
    assert len(read_history(tmp_path)) == 2


def test_the_history_of_the_checkout_is_readable() -> None:
    runs = read_history()
    assert runs
    assert all(run.rows for run in runs)
    assert all(set(SAME) < set(run.machine) for run in runs)
