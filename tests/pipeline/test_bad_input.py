"""Everything that may be wrong with a log, at once: counted, named, kept as rows, and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.errors import ExitCode
from model.ids import GroupId, MemberId, TopicName
from model.log.records import (
    ClassicGroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pipeline.source.logs.left_alone import list_left_alone, note_left_alone
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.folder.watermark import FORMAT_VERSION
from storage.rocks.rocks_opening import open_store
from tests.support.cli.invoking import invoke_app
from tests.support.pipeline.blocks import START_MS, make_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS = 12
GROUP_KEY = b"\x00\x02\x00\x01g"


def write_bad_log(folder: Path) -> Path:
    """Four partitions, of each of which a part is bad, among files of others."""
    batches = make_log(COMMITS // 3)
    bad_crc = bytearray(batches[1])
    bad_crc[70] ^= 1
    strange = encode_batch(
        COMMITS,
        [
            (b"\x00\x63\x00\x01g", b"\x00\x00"),  # a type that there is not
            (GROUP_KEY, b"\x00\x63"),  # a version that there is not
            (GROUP_KEY, b"\x00\x03\x00"),  # a value that is cut off
            (b"\x00\x02\x00\x09g", b"\x00\x00"),  # a key that is cut off
        ],
        START_MS,
    )
    logs = {
        0: [batches[0], bytes(bad_crc), *batches[2:]],
        1: [*batches, batches[-1][:30]],
        2: [*batches, strange],
        3: [b"no log at all, but text that somebody has saved under this name"],
    }
    for partition, parts in logs.items():
        target = folder / f"__consumer_offsets-{partition}"
        target.mkdir(parents=True)
        (target / f"{0:020}.log").write_bytes(b"".join(parts))
    (folder / "__consumer_offsets-0" / "notes.txt").write_text("mine", encoding="utf-8")
    (folder / "__consumer_offsets-0" / "leader-epoch-checkpoint").write_text("", encoding="utf-8")
    (folder / "orders-0").mkdir()
    (folder / "core.1234").write_bytes(b"")
    return folder


def write_odd_numbers(folder: Path) -> None:
    """A partition with records that can be read, and cannot be."""
    member = ClassicGroupMember(MemberId("m"), None, "c", "h", 0, 0, b"", b"")
    odd = GroupMetadataValue("consumer", 1, "range", None, 1 << 62, (member,))
    records: list[tuple[bytes, bytes | None]] = [
        (encode_key(GroupMetadataKey(GroupId("odd"))), encode_value(odd)),
        *(
            (
                encode_key(OffsetCommitKey(GroupId("odd"), TopicName("odd"), partition)),
                encode_value(OffsetCommitValue(offset, -1, "", time_ms)),
            )
            for partition, offset, time_ms in ((0, -(1 << 63), 1 << 62), (1, (1 << 63) - 1, 0))
        ),
    ]
    (folder / "__consumer_offsets-4").mkdir()
    segment = folder / "__consumer_offsets-4" / f"{0:020}.log"
    segment.write_bytes(encode_batch(0, records, START_MS))


def test_bad_parts_and_odd_numbers_are_rows_and_the_rest_is_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also in folders whose names are patterns to Hadoop."""
    from pipeline.tables.writing import escape

    log, out = write_bad_log(tmp_path / "log {1,2} *"), tmp_path / "out[1] ?"
    write_odd_numbers(log)
    ends = tmp_path / "ends.json"
    ends.write_text(json.dumps({"odd": {"0": (1 << 63) - 1, "1": 0}}), encoding="utf-8")
    arguments = ("--path", f"file:{log}/", "--out", out, "--end-offsets", ends, "-o", "json")
    result = invoke_app("pipeline", "tables", *arguments)
    assert result.exit_code == ExitCode.DONE, result.error
    problems = {
        "bad_crc": 1,
        "truncated": 2,
        "unknown_type": 1,
        "unknown_version": 1,
        "bad_value": 1,
        "bad_key": 1,
    }
    content = json.loads(result.out)
    assert content["problems"] == problems
    for name, count in problems.items():
        assert f"{name} {count}" in result.error
    assert "__consumer_offsets-0/notes.txt, core.1234" in result.error
    assert json.loads((out / "_tables.json").read_text(encoding="utf-8"))["problems"] == problems
    found = {row["table"]: row["rows"] for row in content["tables"]}
    commits = 3 * COMMITS - 3
    assert (found["offset_commits"], found["classic_generations"]) == (commits + 2, 1)
    rows = spark.read.parquet(escape(str(out / "records"))).collect()
    assert len(rows) == found["records"] == commits + sum(problems.values()) + 3
    kept = {(row["log_partition"], row["problem"]): row for row in rows if row["problem"]}
    assert bytes(kept[3, "truncated"]["value"]).startswith(b"no log at all")
    assert kept[0, "bad_crc"]["offset"] == 3
    assert f"__consumer_offsets-0/{0:020}.log, byte " in kept[0, "bad_crc"]["problem_detail"]
    assert bytes(kept[2, "unknown_type"]["key"]) == b"\x00\x63\x00\x01g"
    lag = spark.read.parquet(escape(str(out / "group_lag"))).where("topic = 'odd'")
    assert lag.count() == 4
    page = tmp_path / "page.html"
    result = invoke_app("pipeline", "report", "--path", out, "--out", page)
    assert result.exit_code == ExitCode.DONE, result.error
    assert page.stat().st_size > 10_000


@pytest.mark.parametrize("command", ["tables", "compact", "import"])
def test_what_is_no_log_leaves_nothing_behind(
    command: str, spark: SparkSession, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    no_segment = tmp_path / "no-segment"
    (no_segment / "__consumer_offsets-0").mkdir(parents=True)
    newer = tmp_path / "newer"
    open_store(newer, partitions=1).close()
    watermark = newer / "watermark"
    content = bytearray(watermark.read_bytes())
    content[11] = FORMAT_VERSION + 1
    watermark.write_bytes(content)
    out = tmp_path / "out"
    target = ("--data-dir", out) if command == "import" else ("--out", out)
    for path, code in (
        (empty, ExitCode.NOT_FOUND),
        (no_segment, ExitCode.NOT_FOUND),
        (tmp_path / "nowhere", ExitCode.NOT_FOUND),
        (newer, ExitCode.PRECONDITION),
    ):
        before = sorted(entry.name for entry in tmp_path.iterdir())
        result = invoke_app("pipeline", command, "--path", path, *target)
        assert (result.exit_code, len(result.error.splitlines())) == (code, 1), result.error
        assert str(path) in result.error
        assert sorted(entry.name for entry in tmp_path.iterdir()) == before


def test_files_of_a_broker_are_not_named(tmp_path: Path) -> None:
    log = write_bad_log(tmp_path / "log")
    assert list_left_alone(log) == ["__consumer_offsets-0/notes.txt", "core.1234"]
    assert list_left_alone(log / "__consumer_offsets-0") == ["notes.txt"]
    assert note_left_alone(log / "__consumer_offsets-1") == ()
    for number in range(9):
        (log / "__consumer_offsets-1" / f"{number}.bak").write_bytes(b"")
    (line,) = note_left_alone(log / "__consumer_offsets-1")
    assert "4.bak and 4 more" in line
