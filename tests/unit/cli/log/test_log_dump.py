"""`muster log dump`: all that Kafka prints about its own records, from segments and a store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.errors import ExitCode
from cli.main import app
from storage.codec.batch_encoding import encode_batch
from storage.rocks.rocks_opening import open_store
from tests.groups import CHECKOUT
from tests.support.cli.log_files import SEGMENTS, encode_commits, invoke, make_store, write_segment
from tests.support.storage.golden import golden_batches, golden_lines

TRANSACTIONS = "o19-txn-classic"


def dump(*arguments: str | Path) -> list[dict[str, Any]]:
    result = invoke("dump", *arguments, "-o", "jsonl")
    assert result.exit_code == 0, result.error
    return [json.loads(line) for line in result.out.splitlines()]


def check_golden(lines: list[dict[str, Any]]) -> None:
    golden = {(line["partition"], line["offset"]): line for line in golden_lines()}
    assert len(lines) == len(golden) == 6144
    for line in lines:
        expected = golden[line["partition"], line["offset"]]
        assert {name: line.get(name, "(missing)") for name in expected} == expected


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_store(folder / "store")
    return folder


# --------------------------------------------------------------------------------- what it says


def test_every_record_reads_as_kafka_reads_it() -> None:
    lines = dump(SEGMENTS)
    check_golden(lines)
    assert sum(line["isControl"] for line in lines) == 20
    places = [(line["partition"], line["offset"]) for line in lines]
    assert places == sorted(places)


def test_a_batch_has_the_facts_that_kafka_says_of_it() -> None:
    golden = {(line["partition"], line["baseOffset"]): line for line in golden_batches()}
    for line in dump(SEGMENTS):
        expected = golden[line["partition"], line["baseOffset"]]
        assert {name: expected[name] for name in line["batch"]} == line["batch"]


def test_a_store_reads_as_the_segments_do(store: Path) -> None:
    check_golden(dump(store))
    check_golden(dump(store / "store"))


def test_a_store_is_read_beside_its_server_and_not_changed(store: Path) -> None:
    folder = store / "store"
    server = open_store(folder, partitions=50)
    before = list_times(folder)
    check_golden(dump(store))
    assert list_times(folder) == before
    server.close()


def list_times(folder: Path) -> dict[Path, int]:
    """The modification time of each file except RocksDB's own log, which the server may write."""
    files = (path for path in folder.rglob("*") if path.name != "LOG")
    return {path: path.stat().st_mtime_ns for path in files}


def test_a_table_has_bytes_and_meaning() -> None:
    result = invoke("dump", SEGMENTS, "--partition", "22")
    header, first, *_ = result.out.splitlines()
    names = "PARTITION OFFSET TIMESTAMP BASE-OFFSET PRODUCER FLAGS TYPE KEY VALUE KEY-HEX VALUE-HEX"
    assert " ".join(header.split()) == names
    assert first.split()[:2] == ["22", "0"]
    marker = next(line for line in result.out.splitlines() if "control:ABORT" in line)
    assert marker.split()[3:] == ["9", "3/1", "TC", "control:ABORT", "-", "-", "00000000", "0" * 12]


def test_what_cannot_be_decoded_is_shown_with_the_reason(tmp_path: Path) -> None:
    records = [
        (b"\x00\x63later", b"\x00\x00x"),
        (b"\x00\x01\x00\x05g", b"\x00\x04"),
        (b"\x00\x02\x00\x01g", b"\x00\x09new"),
        (b"\x07", b""),
    ]
    write_segment(tmp_path, 0, encode_batch(0, records, 5))
    unknown, cut, newer, short = dump(tmp_path)
    assert (unknown["typeId"], unknown["type"], unknown["keyJson"]) == (99, "UNKNOWN", None)
    assert unknown["key"] == b"\x00\x63later".hex()
    assert (cut["type"], cut["keyJson"]) == ("OFFSET_COMMIT", None)
    assert cut["keyError"]
    assert cut["valueError"]
    assert (newer["keyJson"], newer["valueVersion"]) == ({"group": "g"}, 9)
    assert "version 9" in newer["valueError"]
    assert (short["typeId"], short["type"]) == (None, "UNKNOWN")
    table = invoke("dump", tmp_path)
    assert table.exit_code == 0
    assert len(table.out.splitlines()) == 5


# ------------------------------------------------------------------------------------- filters


def expect(**wanted: Any) -> list[tuple[int, int]]:
    return sorted(
        (line["partition"], line["offset"])
        for line in golden_lines()
        if all(line.get(name) in values for name, values in wanted.items())
    )


def places(lines: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(line["partition"], line["offset"]) for line in lines]


def test_records_of_a_group() -> None:
    lines = dump(SEGMENTS, "--group", "o12-consumer-static")
    golden = [
        (line["partition"], line["offset"])
        for line in golden_lines()
        if (line.get("keyJson") or {}).get("groupId") == "o12-consumer-static"
        or (line.get("keyJson") or {}).get("group") == "o12-consumer-static"
    ]
    assert places(lines) == sorted(golden)
    assert len(lines) > 50


def expect_markers(group: str) -> list[tuple[int, int]]:
    """Markers of the transactions in which the group's offsets were written."""
    writing: set[tuple[int, int]] = set()
    markers = []
    for line in sorted(golden_lines(), key=lambda line: (line["partition"], line["offset"])):
        producer = line["partition"], line["producerId"]
        if line["isControl"]:
            if producer in writing:
                markers.append((line["partition"], line["offset"]))
            writing.discard(producer)
        elif line["isTransactional"] and line["keyJson"]["group"] == group:
            writing.add(producer)
    return markers


@pytest.mark.parametrize("group", [TRANSACTIONS, f"{TRANSACTIONS}.pending", "o18-offsets.wide"])
def test_records_of_a_group_come_with_the_markers_of_its_transactions(group: str) -> None:
    lines = dump(SEGMENTS, "--group", group)
    markers = expect_markers(group)
    assert places([line for line in lines if line["isControl"]]) == markers
    assert bool(markers) == group.startswith(TRANSACTIONS)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["OFFSET_COMMIT"], {"type": ["OFFSET_COMMIT"]}),
        (["offset_commit", "2"], {"typeId": [1, 2]}),
        (["16,GROUP_METADATA"], {"typeId": [16, 2]}),
        (["control"], {"isControl": [True]}),
    ],
)
def test_records_of_types(options: list[str], wanted: dict[str, Any]) -> None:
    arguments = [part for option in options for part in ("--type", option)]
    assert places(dump(SEGMENTS, *arguments)) == expect(**wanted)


def test_records_of_partitions() -> None:
    lines = dump(SEGMENTS, "--partition", "41", "--partition", "5")
    assert places(lines) == expect(partition=[5, 41])


@pytest.mark.parametrize("form", ["ms", "iso"])
def test_records_of_a_time(form: str) -> None:
    times = sorted({line["timestamp"] for line in golden_lines()})
    since, until = times[len(times) // 3], times[len(times) // 2]
    texts = [str(since), str(until)]
    if form == "iso":
        lines = invoke("dump", SEGMENTS, "--since", texts[0], "--until", str(since + 1)).out
        stamp = lines.splitlines()[1].split()[2]
        texts = [stamp, str(until)]
    found = dump(SEGMENTS, "--since", texts[0], "--until", texts[1])
    assert places(found) == expect(timestamp=range(since, until))
    assert found


def test_an_age_counts_back_from_now() -> None:
    assert dump(SEGMENTS, "--until", "0ms", "--since", "99999d") == dump(SEGMENTS)
    assert dump(SEGMENTS, "--since", "0ms") == []


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--type", "OFSET_COMMIT"], "is not a record type: use a number or one of LEGACY"),
        (["--since", "yesterday"], "--since 'yesterday' is not a time"),
        (["--until", "2026-13-01"], "--until '2026-13-01' is not a time"),
        (["-o", "csv"], "-o table or -o jsonl"),
    ],
)
def test_wrong_options_are_usage(arguments: list[str], expected: str) -> None:
    result = invoke("dump", SEGMENTS, *arguments)
    assert (result.exit_code, result.out) == (ExitCode.USAGE, "")
    assert expected in result.error


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        result = invoke("dump", path)
        assert result.exit_code == ExitCode.NOT_FOUND
        assert str(path) in result.error
        assert len(result.error.splitlines()) == 1
    result = invoke("dump", SEGMENTS, "--partition", "3")
    assert (result.exit_code, result.error) == (ExitCode.NOT_FOUND, "partition 3 does not exist")


def test_a_torn_end_is_a_note(tmp_path: Path) -> None:
    first, last = encode_commits(0, "g", ("t", 0, 1)), encode_commits(1, "g", ("t", 0, 2))
    write_segment(tmp_path, 0, first, last[:-5])
    write_segment(tmp_path, 1, first)
    result = invoke("dump", tmp_path, "-o", "jsonl")
    assert result.exit_code == 0
    assert len(result.out.splitlines()) == 2
    assert f"byte {len(first)}, offset 1: a batch of {len(last)} bytes" in result.error


def test_damage_ends_its_partition_and_the_others_are_shown(tmp_path: Path) -> None:
    batches = [encode_commits(offset, "g", ("t", 0, offset)) for offset in range(3)]
    bad = bytearray(batches[1])
    bad[70] ^= 1
    path = write_segment(tmp_path, 0, batches[0], bytes(bad), batches[2])
    write_segment(tmp_path, 1, *batches)
    result = invoke("dump", tmp_path, "-o", "jsonl")
    assert result.exit_code == ExitCode.FAILED
    assert [json.loads(line)["partition"] for line in result.out.splitlines()] == [0, 1, 1, 1]
    assert result.error.startswith(f"partition 0, {path}, byte {len(batches[0])}, offset 1: ")
    assert "CRC" in result.error


def test_records_that_do_not_decompress_are_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    import crc32c

    good = encode_commits(1, "g", ("t", 0, 1))
    bad = bytearray(encode_commits(0, "g", ("t", 0, 0)))
    bad[22] |= 4
    bad[17:21] = crc32c.crc32c(bytes(bad[21:])).to_bytes(4, "big")
    path = write_segment(tmp_path, 0, bytes(bad), good)
    result = invoke("dump", tmp_path, "-o", "jsonl")
    assert result.exit_code == ExitCode.FAILED
    assert len(result.out.splitlines()) == 1
    assert f"partition 0, {path}, byte 0: " in result.error


def test_a_store_of_a_newer_version_is_refused(store: Path, tmp_path: Path) -> None:
    from storage.folder.watermark import FORMAT_VERSION, WatermarkHeader, create_watermark

    (tmp_path / "rocksdb").mkdir()
    header = WatermarkHeader(3, "A" * 22, FORMAT_VERSION + 1)
    with pytest.raises(Exception, match="newer"):
        create_watermark(tmp_path / "watermark", header)
    result = invoke("dump", tmp_path)
    assert result.exit_code == ExitCode.PRECONDITION
    assert "use a newer version" in result.error


@pytest.mark.parametrize("missing", ["watermark", "rocksdb/CURRENT"])
def test_a_store_without_a_file_is_refused(missing: str, tmp_path: Path) -> None:
    open_store(tmp_path, partitions=2).close()
    (tmp_path / missing).unlink()
    result = invoke("dump", tmp_path)
    assert result.exit_code == ExitCode.FAILED
    assert f"{missing} is missing" in result.error


def test_a_reader_that_has_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "cli", "log", "dump", str(SEGMENTS)]
    with subprocess.Popen(
        command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"PARTITION")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


@pytest.mark.parametrize(("command", "forms"), [("dump", "table|jsonl"), ("offsets", "table|csv")])
def test_help_names_the_forms_that_there_are(command: str, forms: str) -> None:
    result = CliRunner().invoke(app, ["log", command, "--help"], env={"COLUMNS": "200"})
    assert forms in result.stdout
    assert "yaml" not in result.stdout
