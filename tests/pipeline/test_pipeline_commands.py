"""`muster pipeline …` and the same as programs: what they print, and how they refuse."""

from __future__ import annotations

import importlib.util
import json
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.errors import ExitCode
from tests.groups import CHECKOUT
from tests.pipeline.logged import SEGMENTS
from tests.pipeline.planted_groups import Log, member_epoch_goes_back
from tests.support.cli.invoking import Result, invoke_app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBMITTED = CHECKOUT / "cli" / "submit" / "muster_pipeline.py"


def invoke(*arguments: str | Path) -> Result:
    return invoke_app("pipeline", *arguments)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A log with one breach, at offset 127 of partition 5, whose last batch is cut off."""
    log = Log(5)
    member_epoch_goes_back(log)
    folder = tmp_path / "log" / "__consumer_offsets-5"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(log.encode()[:-10])
    return folder


@pytest.mark.parametrize("command", ["tables", "audit", "readiness", "report"])
def test_without_the_extra_a_line_says_what_to_install(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, package=None: None if name == "pyspark" else found(name, package),
    )
    out = ("--out", tmp_path / "out") if command in ("tables", "report") else ()
    result = invoke(command, "--path", SEGMENTS, *out)
    assert result.exit_code == ExitCode.PRECONDITION
    assert result.error == "this needs the package pyspark: pip install 'muster-server[spark]'"


def test_what_is_wrong_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    missing = invoke("audit", "--path", tmp_path / "nothing")
    assert missing.exit_code == ExitCode.NOT_FOUND
    assert len(missing.error.splitlines()) == 1
    assert str(tmp_path / "nothing") in missing.error
    out = tmp_path / "out"
    wrong_format = invoke("tables", "--path", SEGMENTS, "--out", out, "--format", "csv")
    assert wrong_format.exit_code == ExitCode.USAGE
    ends = tmp_path / "ends"
    ends.write_text('{"topic": "t"}', encoding="utf-8")
    no_ends = invoke("tables", "--path", SEGMENTS, "--out", out, "--end-offsets", ends)
    assert no_ends.exit_code == ExitCode.USAGE
    assert "line 1" in no_ends.error
    no_pattern = invoke("readiness", "--path", SEGMENTS, "--pattern", "x")
    assert no_pattern.exit_code == ExitCode.USAGE
    assert not out.exists()


def test_an_audit_prints_the_records_that_offend(
    spark: SparkSession, broken: Path, tmp_path: Path
) -> None:
    result = invoke("audit", "--path", broken, "-o", "json", "--out", tmp_path / "found")
    assert result.exit_code == ExitCode.FAILED
    assert "S5: 1" in result.error
    assert "could not be read: 1" in result.error
    content = json.loads(result.out)
    (damage,) = content["damages"]
    where = f"partition {damage['log_partition']}, offset {damage['offset']}: {damage['problem']}"
    assert f"{where}: {damage['detail']}" in result.error
    assert f"{0:020}.log, byte " in damage["detail"]
    (violation,) = [found for found in content["violations"] if found["rule"] == "S5"]
    assert (violation["log_partition"], violation["offset"]) == (5, 127)
    assert violation["record"]["type"] == "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT"
    assert violation["record"]["value"]["memberEpoch"] == 4
    assert content["problems"] == {"truncated": 1}
    written = spark.read.parquet(str(tmp_path / "found" / "violations"))
    assert written.count() == len(content["violations"])


def test_the_program_for_spark_submit_says_the_same(
    spark: SparkSession,
    broken: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["muster_pipeline.py", "audit", "--path", str(broken)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SUBMITTED), run_name="__main__")
    assert ended.value.code == ExitCode.FAILED
    printed = capsys.readouterr()
    assert "o15-updown-range" in printed.out
    assert "S5: 1" in printed.err


def test_the_folder_of_that_program_hides_no_package() -> None:
    assert [file.name for file in SUBMITTED.parent.glob("*.py")] == [SUBMITTED.name]


def test_readiness_prints_what_is_in_the_way(spark: SparkSession, tmp_path: Path) -> None:
    """A classic group while it had members: the log ends with its second generation."""
    log = Log(5)
    log.batches = [batch for batch in log.batches if batch.last_offset <= 46]
    folder = tmp_path / "__consumer_offsets-5"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(log.encode())
    arguments = ("--path", folder, "-o", "json", "--max-size", "1", "--pattern", "classic-1=(?!x)")
    result = invoke("readiness", *arguments)
    assert result.exit_code == ExitCode.DONE, result.error
    groups = {row["group_id"]: row for row in json.loads(result.out)["groups"]}
    found = groups["o15-updown-range"]
    assert found["verdict"] == "BLOCKED"
    hindrances = {reason["hindrance"] for reason in found["reasons"]}
    assert hindrances == {"group_size", "eager_strategy", "pattern"}
    assert found["clients_to_change"] == ["classic-1"]
