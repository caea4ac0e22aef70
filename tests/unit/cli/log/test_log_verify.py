"""`muster log verify`: what passes, its messages about violations, and its exit codes."""

from __future__ import annotations

import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import crc32c
import pytest

from cli.errors import ExitCode
from model.ids import GroupId, LogOffset, LogPartition
from model.past.offset_changes import OffsetChange, OffsetChangeKind
from storage.codec.batch_encoding import encode_batch
from storage.log_store import pack_latest
from storage.offset_changes_codec import encode_change_key, encode_offset_change
from storage.rocks.rocks_opening import open_store
from tests.groups import CHECKOUT
from tests.support.cli.log_files import SEGMENTS, encode_commits, invoke, make_store, write_segment
from tests.support.storage.appends import append, make_append, mark_all, offset_key, offset_value
from tests.support.trimming import trim_once

EXPIRY = CHECKOUT / "tests" / "golden" / "expiry" / "segments"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("imported") / "data"
    assert invoke("import", SEGMENTS, "--data-dir", data, "-q").exit_code == 0
    return data


def check_passes(path: Path) -> dict[str, int]:
    result = invoke("verify", path, "-o", "json")
    assert (result.exit_code, result.error) == (0, ""), result.error
    said: dict[str, int] = json.loads(result.out)
    assert said["violations"] == []
    return said


def check_fails(path: Path, rule: str, *arguments: str) -> str:
    result = invoke("verify", path, *arguments, "-o", "json")
    assert result.exit_code == ExitCode.FAILED
    said = json.loads(result.out)
    assert said["violations"][0]["rule"] == rule, result.error
    assert said["violations"][0]["why"] in result.error
    return result.error


def test_what_kafka_wrote_passes() -> None:
    said = check_passes(SEGMENTS)
    assert (said["partitions"], said["batches"], said["records"]) == (34, 2511, 6144)
    assert (said["groups"], said["missing_offsets"]) == (46, 0)
    assert check_passes(EXPIRY)["records"] == 86
    (partition, *_) = sorted(SEGMENTS.iterdir())
    (segment,) = partition.iterdir()
    assert check_passes(segment) == check_passes(partition)


def test_imports_and_exports_pass(imported: Path, tmp_path: Path) -> None:
    assert check_passes(imported)["records"] == 6144
    for name, arguments in (("whole", ["--history", "--with-side"]), ("present", [])):
        invoke("export", tmp_path / name, "--data-dir", imported, "-q", *arguments)
    assert check_passes(tmp_path / "whole")["records"] == 6144
    present = check_passes(tmp_path / "present")
    assert 0 < present["records"] < 1000
    assert present["missing_offsets"] > 2000
    again = tmp_path / "again"
    assert invoke("import", tmp_path / "present", "--data-dir", again, "-q").exit_code == 0
    assert check_passes(again)["records"] == present["records"]


def test_an_import_into_a_store_with_groups_passes(tmp_path: Path) -> None:
    first = write_segment(tmp_path / "log", 2, encode_commits(0, "mine", ("t", 0, 1)))
    data = tmp_path / "data"
    invoke("import", first.parent.parent, "--data-dir", data, "--partitions", "3", "-q")
    result = invoke("import", SEGMENTS, "--data-dir", data, "--abort-open", "-q")
    assert result.exit_code == 0, result.error
    assert check_passes(data)["groups"] == 47


def test_a_store_that_was_written_to_and_trimmed_passes(imported: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(imported, data)
    store = open_store(data / "store", partitions=50)
    for number in (8, 20):
        append(store, {number: [(b"\0\x63new", b"\0\0"), (b"\0\x63new", None)]})
    mark_all(store)
    store.sync_watermark()
    while trim_once(store, LogPartition(8), 100):
        pass
    store.close()
    said = check_passes(data)
    assert said["missing_offsets"] > 50
    assert said["records"] < 6144 + 4


def test_a_store_is_verified_while_it_is_open(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", partitions=1)
    for number in range(50):
        append(store, {0: [(offset_key("g"), offset_value(number))]})
        mark_all(store)
        if number % 10 == 0:
            assert check_passes(tmp_path)["records"] == number + 1
    store.close()


def test_a_batch_that_is_not_whole_names_its_place(tmp_path: Path) -> None:
    batch = encode_commits(0, "g", ("t", 0, 7))
    damaged = bytearray(encode_commits(1, "g", ("t", 0, 8)))
    damaged[-3] ^= 1
    path = write_segment(tmp_path, 4, batch, bytes(damaged), encode_commits(2, "g", ("t", 0, 9)))
    said = check_fails(tmp_path, "segment")
    assert f"partition 4, offset 1: {path}, byte {len(batch)}" in said
    assert "CRC" in said


def test_a_torn_tail_is_allowed_on_demand(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, encode_commits(0, "g", ("t", 0, 7)), b"\0\0\0\0\0\0\0\1\0\0\0\7")
    assert "byte" in check_fails(tmp_path, "torn tail")
    result = invoke("verify", tmp_path, "--allow-torn-tail")
    assert result.exit_code == 0
    assert "byte" in result.error


def test_the_first_record_that_is_wrong_has_its_key(tmp_path: Path) -> None:
    key = b"\0\x01\0\x01g"
    write_segment(tmp_path, 0, encode_batch(5, [(offset_key("g"), offset_value(1)), (key, b"")], 9))
    said = check_fails(tmp_path, "records")
    assert f"partition 0, offset 6, key {key.hex()}" in said


def test_latest_that_is_not_the_log_is_found(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", partitions=1)
    append(store, {0: [(offset_key("g"), offset_value(7))]})
    right = make_append(0, 1, [(offset_key("g"), offset_value(8))])
    store.write([replace(right, latest={offset_key("g"): pack_latest(1, 5, offset_value(9))})])
    mark_all(store)
    store.close()
    said = check_fails(tmp_path, "latest")
    assert "partition 0, offset 1" in said
    assert offset_key("g").hex() in said


def test_a_watermark_above_the_log_is_found(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", partitions=1)
    append(store, {0: [(offset_key("g"), offset_value(7))]})
    mark_all(store)
    store.close()
    path = tmp_path / "store" / "watermark"
    content = bytearray(path.read_bytes())
    for slot in (512, 1024):
        struct.pack_into(">QQQ", content, slot, 99, 1, 12)
        struct.pack_into(">I", content, slot + 24, crc32c.crc32c(bytes(content[slot : slot + 24])))
    path.write_bytes(content)
    assert "acknowledged up to 12" in check_fails(tmp_path, "watermark")


def test_a_side_record_that_cannot_be_read_is_found(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", partitions=1)
    store.write([], [(b"\x63what", b"")])
    mark_all(store)
    store.close()
    assert "side record 6377686174" in check_fails(tmp_path, "side")


@pytest.mark.parametrize("key", [b"\0\0\0\1g!", b"\xff\xff\xff\xff\0\0\0\1g!"])
def test_an_entry_of_the_ledger_that_cannot_be_read_is_found(key: bytes, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", partitions=1)
    change = OffsetChange(OffsetChangeKind.RESET, 1, "User:a", LogOffset(3), LogOffset(4), 2)
    good = (encode_change_key(GroupId("a"), 3), encode_offset_change(change))
    store.write([], causes=[good, (key, b"")])
    mark_all(store)
    store.close()
    assert key.hex() in check_fails(tmp_path, "causes")


def test_a_group_in_another_partition_than_its_own_is_found(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", partitions=3)
    append(store, {LogPartition(0): [(offset_key("g"), offset_value(7))]})
    mark_all(store)
    store.close()
    assert "belongs in partition" in check_fails(tmp_path, "placement")


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_nothing_to_verify(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = invoke("verify", tmp_path / name)
    assert result.exit_code == ExitCode.NOT_FOUND
    assert len(result.error.splitlines()) == 1


def test_a_store_of_a_newer_format_is_not_judged(tmp_path: Path) -> None:
    open_store(tmp_path / "store", partitions=1).close()
    path = tmp_path / "store" / "watermark"
    content = bytearray(path.read_bytes())
    content[8:12] = (99).to_bytes(4, "big")
    path.write_bytes(content)
    result = invoke("verify", tmp_path)
    assert result.exit_code == ExitCode.PRECONDITION
    assert "newer version" in result.error


def test_offsets_that_wait_and_are_not_kept_are_found(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    assert "has no entry" in check_fails(tmp_path, "pending")
