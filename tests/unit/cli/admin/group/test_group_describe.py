"""`muster group describe`: several groups, and the tables of Kafka's tool."""

from __future__ import annotations

import csv
import io
import json

import pytest

from coordinator.core.replay.group_records import replay
from model.commands.consumer import ConsumerGroupHeartbeat
from model.ids import GroupId, InstanceId, MemberId, TopicName
from tests.support.imported_groups import make_imported
from tests.unit.cli.admin.group.test_group_list import join, prepare
from tests.unit.cli.admin.test_admin_commands import CALLER, Result, Server, server

__all__ = ("server",)


def header(result: Result) -> list[str]:
    return next(line for line in result.out.splitlines() if line.startswith("GROUP ")).split()


def rows(result: Result) -> list[dict[str, str]]:
    assert result.exit_code == 0, result.error
    return list(csv.DictReader(io.StringIO(result.out)))


async def test_groups_that_are_named_are_in_one_table(server: Server) -> None:
    await prepare(server)
    shown = await server.run("group", "describe", "one", "big", "one")
    lines = shown.out.splitlines()
    assert lines[0].startswith("one: Consumer, Stable, group epoch ")
    assert lines[1].startswith("big: Consumer, Reconciling, group epoch ")
    assert lines[2].startswith("m2 waits for ")
    assert [line.split()[:2] for line in lines[4:]] == [["one", "m1"], ["big", "m1"], ["big", "m2"]]
    lined = await server.run("group", "describe", "one", "big", "-o", "jsonl")
    groups = [json.loads(line) for line in lined.out.splitlines()]
    assert [(group["group_id"], len(group["members"])) for group in groups] == [
        ("one", 1),
        ("big", 2),
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--all"], ["big", "loose", "one"]),
        (["--pattern", ".*o.*"], ["loose", "one"]),
        (["--unconverged"], ["big"]),
        (["--all", "--unconverged"], ["big"]),
        (["--pattern", "none"], []),
    ],
)
async def test_groups_are_looked_for(
    server: Server, options: list[str], expected: list[str]
) -> None:
    await prepare(server)
    shown = await server.run("group", "describe", *options, "--state", "-o", "csv")
    assert [row["GROUP"] for row in rows(shown)] == expected


async def test_a_group_that_cannot_be_described_is_not_looked_for(server: Server) -> None:
    await prepare(server)
    runtime = server.runtime
    for record in make_imported("share", "shared", {"members": "a", "epoch": "3"}):
        replay(runtime.shards[runtime.partition_of(GroupId("shared"))], record)
    listed = await server.run("group", "list", "-o", "jsonl")
    assert len(listed.out.splitlines()) == 4
    shown = await server.run("group", "describe", "--all", "-o", "jsonl")
    assert shown.exit_code == 0
    assert len(shown.out.splitlines()) == 3


async def test_members_are_in_the_columns_of_kafka_s_tool(server: Server) -> None:
    await prepare(server)
    plain = await server.run("group", "describe", "big", "--members")
    assert header(plain) == ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    verbose = await server.run("group", "describe", "big", "--members", "--verbose")
    assert header(verbose) == [
        *header(plain),
        "CURRENT-EPOCH",
        "CURRENT-ASSIGNMENT",
        "TARGET-EPOCH",
        "TARGET-ASSIGNMENT",
    ]
    found = rows(
        await server.run("group", "describe", "big", "--members", "--verbose", "-o", "csv")
    )
    first, second = found
    assert (first["CURRENT-ASSIGNMENT"], first["#PARTITIONS"]) == ("orders:0,1,2,3", "4")
    assert first["TARGET-EPOCH"] == second["TARGET-EPOCH"] == second["CURRENT-EPOCH"]
    assert len(second["TARGET-ASSIGNMENT"].split(",")) == 2
    assert second["STATE"] == "UNRELEASED_PARTITIONS"


async def test_instance_ids_have_their_column_if_there_is_one(server: Server) -> None:
    await prepare(server)
    heartbeat = ConsumerGroupHeartbeat(
        CALLER,
        GroupId("static"),
        MemberId("m1"),
        0,
        instance_id=InstanceId("i1"),
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=(TopicName("orders"),),
        owned=(),
    )
    await server.runtime.call(heartbeat)
    shown = await server.run("group", "describe", "static", "one", "--members")
    assert header(shown)[:4] == ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST"]
    assert [line.split()[:3] for line in shown.out.splitlines()[1:]] == [
        ["static", "m1", "i1"],
        ["one", "m1", "-"],
    ]


async def test_states_are_in_the_columns_of_kafka_s_tool(server: Server) -> None:
    await prepare(server)
    plain = await server.run("group", "describe", "--all", "--state")
    kafkas = ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    assert header(plain) == [*kafkas, "#MEMBERS"]
    verbose = await server.run("group", "describe", "--all", "--state", "--verbose")
    assert header(verbose) == [*kafkas, "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"]
    big, loose, one = (line.split() for line in verbose.out.splitlines()[1:])
    assert big[1:4] == [server.address, "uniform", "Reconciling"]
    assert (big[-1], one[-1], loose[-1]) == ("2", "1", "0")
    assert loose[2:6] == ["-", "Empty", "0", "-"]


async def test_offsets_have_owners_also_without_a_commit(server: Server) -> None:
    await prepare(server)
    shown = await server.run("group", "describe", "one", "loose", "--offsets")
    kafkas = ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    place, ours = ["GROUP", "TOPIC", "PARTITION"], ["LAG-SECONDS", "METADATA", "ERROR"]
    assert header(shown) == [*place, *kafkas, *ours]
    assert [line.split()[:9] for line in shown.out.splitlines()[1:]] == [
        ["one", "orders", str(partition), "-", "-", "-", "m1", "/127.0.0.1", "client-7"]
        for partition in range(4)
    ] + [["loose", "orders", "0", "40", "-", "-", "-", "-", "-"]]
    assert "Group loose has no active members." in shown.error
    verbose = await server.run("group", "describe", "one", "--offsets", "--verbose")
    assert header(verbose) == [*place, "LEADER-EPOCH", *kafkas, *ours]
    lined = await server.run("group", "describe", "loose", "--offsets", "-o", "jsonl")
    row = json.loads(lined.out)
    assert (row["group_id"], row["offset"], row["lag"], row["member_id"]) == (
        "loose",
        40,
        None,
        None,
    )


@pytest.mark.parametrize("view", [[], ["--members"], ["--state"], ["--offsets"]])
async def test_a_group_that_is_not_there_has_its_exit_code(server: Server, view: list[str]) -> None:
    await prepare(server)
    missing = await server.run("group", "describe", "nosuch", *view)
    assert (missing.exit_code, missing.out) == (3, "")
    assert "GROUP_ID_NOT_FOUND" in missing.error
    some = await server.run("group", "describe", "nosuch", "one", *view)
    assert some.exit_code == 1
    assert some.error.startswith("nosuch: GROUP_ID_NOT_FOUND")
    assert "one" in some.out


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["g", "--all"],
        ["g", "--unconverged"],
        ["--pattern", ""],
        ["--pattern", "("],
        ["g", "--members", "--state"],
        ["g", "--verbose"],
        ["g", "h", "--as-of", "1m"],
        ["--all", "--as-of", "1m"],
        ["g", "--offsets", "--as-of", "1m"],
    ],
)
async def test_what_is_asked_wrongly_is_exit_code_2(server: Server, options: list[str]) -> None:
    refused = await server.run("group", "describe", *options)
    assert (refused.exit_code, refused.out) == (2, "")
    assert refused.error


async def test_a_server_that_is_not_there_is_exit_code_5(server: Server) -> None:
    await join(server, "one", "m1")
    for command in (
        ["list"],
        ["describe", "one", "two"],
        ["describe", "--all"],
        ["offsets", "one"],
    ):
        lost = await Server(server.runtime, "127.0.0.1:1").run("group", *command)
        assert lost.exit_code == 5
