"""`muster log offsets`: committed offsets of groups, from segments and stores."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from cli.errors import ExitCode
from model.ids import GroupId, compute_log_partition
from tests.groups import CHECKOUT
from tests.support.cli.log_files import SEGMENTS, encode_commits, invoke, make_store, write_segment

TRUTH = CHECKOUT / "tests" / "golden" / "truth" / "final_state_after_restart.json"
WIDE = "o18-offsets.wide"
PENDING = "o19-txn-classic.pending"


def read(group: str, path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The offsets of a group by topic and partition; none if it is not found."""
    result = invoke("offsets", path, "--group", group, "-o", "json")
    if result.exit_code == ExitCode.NOT_FOUND:
        assert result.out == ""
        return {}
    assert result.exit_code == 0, result.error
    content = json.loads(result.out)
    assert (content["_command"], content["group_id"]) == ("log.offsets", group)
    return {(each["topic"], each["partition"]): each for each in content["offsets"]}


def check_truth(path: Path) -> None:
    """Every group has the offsets that a broker returned after a start on these segments."""
    groups = json.loads(TRUTH.read_text())["groups"]
    committed = 0
    for group in groups:
        answer = group["offsetFetch.v9"]
        expected = {
            (topic["name"], each["partitionIndex"]): (
                each["committedOffset"],
                each["committedLeaderEpoch"],
                each["metadata"],
            )
            for topic in answer["topics"]
            for each in topic["partitions"]
        }
        found = {
            place: (each["offset"], each["leader_epoch"], each["metadata"])
            for place, each in read(group["groupId"], path).items()
        }
        assert found == expected, group["groupId"]
        committed += len(expected)
    assert len(groups) > 40
    assert committed > 200


def test_segments_hold_what_kafka_has_after_a_restart() -> None:
    check_truth(SEGMENTS)


def test_a_store_holds_what_kafka_has_after_a_restart(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    check_truth(tmp_path)


def test_offsets_of_open_transactions_are_left_out() -> None:
    result = invoke("offsets", SEGMENTS, "--group", PENDING)
    assert "4 offsets of group o19-txn-classic.pending belong to open" in result.error


def test_csv_is_what_kafkas_tool_takes() -> None:
    result = invoke("offsets", SEGMENTS, "--group", WIDE, "-o", "csv")
    expected = [
        f"{topic},{partition},{each['offset']}"
        for (topic, partition), each in read(WIDE, SEGMENTS).items()
    ]
    assert result.out.splitlines() == expected
    assert expected[0].startswith("t50,0,")


def test_a_table_has_kafkas_columns_first(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, encode_commits(0, "g", ("orders", 2, 7)))
    lines = invoke("offsets", tmp_path, "--group", "g").out.splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "GROUP TOPIC PARTITION CURRENT-OFFSET LEADER-EPOCH COMMITTED-AT METADATA",
        "g orders 2 7 3 2023-11-14T22:13:20.123Z note",
    ]


# ---------------------------------------------------------------------------- where a group is


def test_a_group_is_found_where_another_partition_count_put_it(tmp_path: Path) -> None:
    """Only some partitions of fifty were copied: the highest number says nothing."""
    group = "payments-app"
    partition = compute_log_partition(GroupId(group), 50)
    write_segment(tmp_path, partition, encode_commits(0, group, ("t", 0, 5)))
    write_segment(tmp_path, partition + 1, encode_commits(0, "other", ("t", 0, 6)))
    assert compute_log_partition(GroupId(group), partition + 2) != partition
    assert read(group, tmp_path)["t", 0]["offset"] == 5


def test_only_the_partition_that_a_group_hashes_to_is_read(tmp_path: Path) -> None:
    partition = compute_log_partition(GroupId("g"), 5)
    for each in range(5):
        write_segment(tmp_path, each, b"not a segment at all" * 10)
    write_segment(tmp_path, partition, encode_commits(0, "g", ("t", 0, 5)))
    assert read("g", tmp_path)["t", 0]["offset"] == 5


def test_a_group_in_two_other_partitions_is_not_guessed(tmp_path: Path) -> None:
    expected = compute_log_partition(GroupId("g"), 4)
    others = [each for each in range(4) if each != expected]
    for each in range(4):
        commits = encode_commits(0, "g" if each in others[:2] else "other", ("t", 0, each))
        write_segment(tmp_path, each, commits)
    result = invoke("offsets", tmp_path, "--group", "g")
    assert (result.exit_code, result.out) == (ExitCode.FAILED, "")
    assert f"in partitions {others[0]}, {others[1]}" in result.error
    folder = tmp_path / f"__consumer_offsets-{others[1]}"
    assert read("g", folder)["t", 0]["offset"] == others[1]


def test_a_group_whose_id_is_within_that_of_another_is_not_mixed_up(tmp_path: Path) -> None:
    batches = encode_commits(0, "ggg", ("t", 0, 1)), encode_commits(1, "g", ("gg", 0, 2))
    write_segment(tmp_path, 0, *batches)
    assert {place: each["offset"] for place, each in read("g", tmp_path).items()} == {("gg", 0): 2}


# ------------------------------------------------------------------------------------- bad input


def test_damage_gives_no_offsets(tmp_path: Path) -> None:
    bad = bytearray(encode_commits(1, "g", ("t", 0, 2)))
    bad[80] ^= 1
    good = encode_commits(0, "g", ("t", 0, 1)), encode_commits(2, "g", ("t", 0, 3))
    path = write_segment(tmp_path, 0, good[0], bytes(bad), good[1])
    result = invoke("offsets", tmp_path, "--group", "g")
    assert (result.exit_code, result.out) == (ExitCode.FAILED, "")
    assert result.error.startswith(f"partition 0, {path}, byte {len(good[0])}, offset 1: ")
    assert len(result.error.splitlines()) == 1


def test_a_torn_end_is_a_note(tmp_path: Path) -> None:
    first, last = encode_commits(0, "g", ("t", 0, 1)), encode_commits(1, "g", ("t", 0, 2))
    write_segment(tmp_path, 0, first, last[:-9])
    result = invoke("offsets", tmp_path, "--group", "g", "-o", "csv")
    assert (result.exit_code, result.out) == (0, "t,0,1\n")
    assert f"byte {len(first)}" in result.error


@pytest.mark.parametrize("command", [["dump"], ["offsets", "--group", "g"]])
def test_old_message_formats_are_refused(command: list[str], tmp_path: Path) -> None:
    content = b"\x01\x00a message of long ago"
    message = struct.pack(">qiI", 0, 4 + len(content), zlib.crc32(content)) + content
    path = write_segment(tmp_path, 0, message)
    for source in (tmp_path, path):
        result = invoke(*command, source)
        assert result.exit_code == ExitCode.PRECONDITION
        assert result.error == (
            f"partition 0, {path}, byte 0, offset 0: message format v1, only v2 can be read "
            "(Kafka 0.11 and later)"
        )


def test_a_group_whose_id_is_no_text_is_not_found() -> None:
    result = invoke("offsets", SEGMENTS, "--group", "\udcff")
    assert result.exit_code == ExitCode.NOT_FOUND


def test_a_group_that_is_not_there_is_not_found() -> None:
    result = invoke("offsets", SEGMENTS, "--group", "nobody")
    assert (result.exit_code, result.out) == (ExitCode.NOT_FOUND, "")
    assert result.error == f"{SEGMENTS} holds no committed offsets of group nobody"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "give either PATH or --bootstrap-server"),
        ([SEGMENTS, "--bootstrap-server", "h:1"], "give either PATH or --bootstrap-server"),
        ([SEGMENTS, "-o", "yaml"], "-o table, csv or json"),
        ([SEGMENTS, "--commit-to", "localhost"], "is not HOST:PORT/GROUP"),
        ([SEGMENTS, "--commit-to", "localhost:9092/"], "is not HOST:PORT/GROUP"),
        ([SEGMENTS, "--commit-to", "localhost:9092/\udcff"], "is not HOST:PORT/GROUP"),
    ],
)
def test_wrong_options_are_usage(arguments: list[str | Path], expected: str) -> None:
    result = invoke("offsets", *arguments, "--group", WIDE)
    assert (result.exit_code, result.out) == (ExitCode.USAGE, "")
    assert expected in result.error


def test_settings_that_the_client_does_not_know_are_usage(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("no.such.setting=1\n")
    server = ("--bootstrap-server", "127.0.0.1:1")
    result = invoke("offsets", "--group", "g", *server, "--command-config", file)
    assert result.exit_code == ExitCode.USAGE
    assert "no.such.setting" in result.error
    result = invoke("offsets", "--group", "g", *server, "--command-config", tmp_path / "missing")
    assert result.exit_code == ExitCode.USAGE


def test_a_cluster_that_does_not_answer_is_unreachable() -> None:
    server = ("--bootstrap-server", "127.0.0.1:1", "--timeout", "300ms")
    result = invoke("offsets", "--group", "g", *server)
    assert (result.exit_code, result.out) == (ExitCode.UNREACHABLE, "")
    assert result.error == "127.0.0.1:1 cannot be reached, or did not answer within 0.3 s"
    target = ("--commit-to", "127.0.0.1:1/g", "--timeout", "300ms", "--yes", "-q")
    result = invoke("offsets", SEGMENTS, "--group", WIDE, *target)
    assert result.exit_code == ExitCode.UNREACHABLE
