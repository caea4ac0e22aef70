"""`muster topic` and `muster group` against a real AdminService, and their exit codes."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.admin.group.group_renders import render_subscription
from cli.errors import CommandError, ExitCode
from cli.main import app
from coordinator.core.replay.group_records import replay
from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.caller import Caller
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from model.log.commit_records import make_offset_columns
from muster.v1 import admin_pb2
from tests.support.imported_groups import make_imported
from tests.support.memory import MemoryLogStore

CALLER = Caller("User:ANONYMOUS", "client-7", "/127.0.0.1")


@dataclass
class Result:
    """The output and the exit code of a command."""

    exit_code: int
    out: str
    error: str


@dataclass
class Server:
    """A running server, and commands that call it."""

    runtime: Runtime
    address: str

    async def run(self, *arguments: str) -> Result:
        return await asyncio.to_thread(invoke, *arguments, "--server", self.address)


def invoke(*arguments: str) -> Result:
    result = CliRunner().invoke(app, arguments)
    if isinstance(result.exception, CommandError):
        return Result(result.exception.exit_code, result.stdout, result.exception.message)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Result(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    runtime = Runtime(MemoryLogStore(8), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    grpc = GrpcServer(runtime, AllowAll(), GrpcSettings(grpc_page_size_max=2))
    port = await grpc.start("127.0.0.1", 0)
    yield Server(runtime, f"127.0.0.1:{port}")
    await grpc.stop(0)
    await runtime.stop()


async def test_ends_are_reported_and_shown(server: Server) -> None:
    await server.run("topic", "create", "orders=2")
    topics = (TopicOffsets(TopicName("orders"), None, make_offset_columns([(0, 7, -1, "")])),)
    await server.runtime.call(OffsetCommit(CALLER, GroupId("g"), MemberId(""), None, topics))
    told = await server.run("topic", "report-end", "orders", "0=10", "1=0")
    assert told.out.split()[-6:] == ["orders", "0", "10", "orders", "1", "0"]
    assert told.error == "reported: 2, believed for 120 s\n"
    shown = await server.run("group", "offsets", "g", "-o", "json")
    (row,) = json.loads(shown.out)["offsets"]
    assert (row["offset"], row["end_offset"], row["lag"]) == (7, 10, 3)


async def test_ends_that_are_not_taken_are_said_and_the_others_are_taken(server: Server) -> None:
    await server.run("topic", "create", "orders=2")
    told = await server.run("topic", "report-end", "orders", "0=10", "7=1", "-o", "csv")
    assert told.exit_code == ExitCode.NOT_FOUND
    assert told.error == "orders-7: UNKNOWN_TOPIC_OR_PARTITION"
    assert told.out.splitlines()[-1] == "orders,0,10"
    gone = await server.run("topic", "report-end", "absent", "0=10")
    assert (gone.exit_code, gone.out) == (ExitCode.NOT_FOUND, "")


async def test_topics_are_created_grown_listed_and_deleted(server: Server) -> None:
    created = await server.run("topic", "create", "orders=12", "payments=4", "-o", "csv")
    assert created.exit_code == 0
    assert [line.split(",")[:2] for line in created.out.splitlines()] == [
        ["TOPIC", "PARTITIONS"],
        ["orders", "12"],
        ["payments", "4"],
    ]
    assert created.error == "created: 2\n"
    grown = await server.run("topic", "grow", "orders=16", "--yes", "--quiet")
    assert (grown.exit_code, grown.error) == (0, "")
    listed = await server.run("topic", "list", "-o", "json")
    content = json.loads(listed.out)
    assert content["_command"] == "topic.list"
    assert [(topic["topic_name"], topic["num_partitions"]) for topic in content["topics"]] == [
        ("orders", 16),
        ("payments", 4),
    ]
    gone = await server.run("topic", "delete", "orders", "-y")
    assert gone.exit_code == 0
    assert list(server.runtime.image.by_name) == ["payments"]


async def test_a_table_shows_ids_as_kafka_does(server: Server) -> None:
    await server.run("topic", "create", "orders=12")
    (topic,) = server.runtime.image.by_name.values()
    row = (await server.run("topic", "list")).out.splitlines()[1].split()
    assert row[:2] == ["orders", "12"]
    assert re.fullmatch(r"[\w-]{22}", row[2])
    assert bytes.fromhex(topic.topic_id.hex()) == topic.topic_id


async def test_all_pages_are_listed(server: Server) -> None:
    await server.run("topic", "create", *(f"t{number}=1" for number in range(5)))
    listed = await server.run("topic", "list", "-o", "jsonl")
    assert len(listed.out.splitlines()) == 5


async def test_a_dry_run_changes_nothing(server: Server) -> None:
    would = await server.run("topic", "create", "orders=12", "--dry-run")
    assert (would.exit_code, would.error) == (0, "would be created: 1\n")
    assert not server.runtime.image.by_name
    await server.run("topic", "create", "orders=12")
    assert (await server.run("topic", "delete", "orders", "--dry-run")).exit_code == 0
    assert (await server.run("topic", "grow", "orders=13", "--dry-run")).exit_code == 0
    assert server.runtime.image.by_name[TopicName("orders")].partitions == 12


async def test_racks_are_said_listed_and_forgotten(server: Server, tmp_path: Path) -> None:
    await server.run("topic", "create", "orders=3")
    tried = await server.run("topic", "racks", "orders", "a", "--dry-run")
    assert (tried.exit_code, tried.error) == (0, "would be set\n")
    assert server.runtime.image.by_name[TopicName("orders")].racks == ()
    said = await server.run("topic", "racks", "orders", "a,b,a", "-", "c")
    assert (said.exit_code, said.error) == (0, "set\n")
    listed = await server.run("topic", "racks", "orders", "-o", "json")
    content = json.loads(listed.out)
    assert [each["racks"] for each in content["partitions"]] == [["a", "b"], [], ["c"]]
    file = tmp_path / "racks.yaml"
    file.write_text("[[x], [y]]")
    assert (await server.run("topic", "racks", "orders", "--file", str(file))).exit_code == 0
    assert server.runtime.image.by_name[TopicName("orders")].racks == (("x",), ("y",))
    assert (await server.run("topic", "racks", "orders", "--clear", "-q")).exit_code == 0
    assert server.runtime.image.by_name[TopicName("orders")].racks == ()


async def test_nobody_to_ask_means_nothing_is_deleted(server: Server) -> None:
    await server.run("topic", "create", "orders=12")
    for arguments in (("delete", "orders"), ("grow", "orders=13")):
        refused = await server.run("topic", *arguments)
        assert refused.exit_code == ExitCode.USAGE
        assert "add --yes" in refused.error
    assert server.runtime.image.by_name[TopicName("orders")].partitions == 12


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["topic", "delete", "gone", "-y"], ExitCode.NOT_FOUND, "gone: UNKNOWN_TOPIC_OR_PARTITION"),
        (["topic", "grow", "gone=3", "-y"], ExitCode.NOT_FOUND, "gone: UNKNOWN_TOPIC_OR_PARTITION"),
        (["topic", "create", "here=1"], ExitCode.PRECONDITION, "here: TOPIC_ALREADY_EXISTS"),
        (["topic", "grow", "here=2", "-y"], ExitCode.USAGE, "here: INVALID_PARTITIONS"),
        (["topic", "create", "here"], ExitCode.USAGE, "'here' is not NAME=PARTITIONS"),
        (["topic", "racks", "gone"], ExitCode.NOT_FOUND, "topic gone does not exist"),
        (["topic", "racks", "gone", "a"], ExitCode.NOT_FOUND, "UNKNOWN_TOPIC_OR_PARTITION"),
        (["topic", "racks", "here", "a", "b", "c"], ExitCode.USAGE, "the topic has 2"),
        (["topic", "racks", "here", "a,"], ExitCode.USAGE, "is not a list of rack names"),
        (["topic", "racks", "here", "a", "--clear"], ExitCode.USAGE, "give only one of"),
        (["topic", "racks", "here", "--file", "/gone"], ExitCode.USAGE, "cannot read /gone"),
        (["topic", "create", "a=1", "a=2"], ExitCode.USAGE, "a is given with 1 and with 2"),
        (["group", "describe", "gone"], ExitCode.NOT_FOUND, "GROUP_ID_NOT_FOUND"),
    ],
)
async def test_a_failure_is_told_by_its_exit_code(
    arguments: list[str], exit_code: ExitCode, message: str, server: Server
) -> None:
    await server.run("topic", "create", "here=2")
    result = await server.run(*arguments)
    assert result.exit_code == exit_code
    assert message in result.error
    assert len(result.error.splitlines()) == 1


async def test_one_topic_that_fails_does_not_stop_the_others(server: Server) -> None:
    await server.run("topic", "create", "here=2")
    result = await server.run("topic", "create", "here=2", "new=1")
    assert result.exit_code == ExitCode.PRECONDITION
    assert set(server.runtime.image.by_name) == {"here", "new"}
    mixed = await server.run("topic", "delete", "gone", "new", "..", "-y", "-o", "jsonl")
    assert mixed.exit_code in (ExitCode.NOT_FOUND, ExitCode.FAILED)
    assert json.loads(mixed.out)["topic_name"] == "new"


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_that_is_not_there() -> None:
    address = f"127.0.0.1:{find_free_port()}"
    result = invoke("topic", "list", "--server", address)
    assert result.exit_code == ExitCode.UNREACHABLE
    assert f"cannot reach {address}: is `muster serve` running there?" in result.error


def test_a_server_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        result = invoke("group", "list", "--server", address, "--timeout", "200ms")
    assert result.exit_code == ExitCode.UNREACHABLE
    assert result.error == f"{address} did not answer within 0.2 s"


@pytest.mark.parametrize("duration", ["", "0", "fast", "-1s", "5h"])
def test_what_is_no_duration(duration: str) -> None:
    result = invoke("topic", "list", "--timeout", duration)
    assert result.exit_code == ExitCode.USAGE


async def join(runtime: Runtime, group: str, member: str) -> None:
    await runtime.call(
        ConsumerGroupHeartbeat(
            CALLER,
            GroupId(group),
            MemberId(member),
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(TopicName("orders"),),
            owned=(),
        )
    )


async def test_classic_share_and_streams_groups(server: Server) -> None:
    for kind, name, options in (
        ("classic", "c", {"type": "connect", "protocol": "v1", "generation": "7", "members": "a"}),
        ("share", "s", {"epoch": "3", "members": "a,b"}),
        ("streams", "t", {"epoch": "3", "target": "2", "members": "a@3"}),
    ):
        shard = server.runtime.shards[server.runtime.partition_of(GroupId(name))]
        for record in make_imported(kind, name, options):
            replay(shard, record)
    listed = (await server.run("group", "list")).out.splitlines()
    assert [line.split() for line in listed[1:]] == [
        ["c", "Classic", "Stable", "1", "7"],
        ["s", "Share", "Stable", "2", "3"],
        ["t", "Streams", "Assigning", "1", "3"],
    ]
    head, columns, row = (await server.run("group", "describe", "c")).out.splitlines()
    assert head == "c: Classic, Stable, generation 7, protocol type connect, protocol v1"
    member = dict(zip(columns.split(), row.split(), strict=False))
    assert (member["CONSUMER-ID"], member["CLIENT-ID"]) == ("a", "client-a")
    assert (member["CURRENT-EPOCH"], member["STATE"]) == ("-", "-")
    refused = await server.run("group", "describe", "s")
    assert refused.exit_code == ExitCode.NOT_FOUND
    assert "Group s is not a consumer group or a classic group" in refused.error


async def test_groups_are_listed_and_described(server: Server) -> None:
    await server.run("topic", "create", "orders=3")
    await join(server.runtime, "billing", "m1")
    await server.runtime.call(
        OffsetCommit(
            CALLER,
            GroupId("nightly"),
            MemberId(""),
            None,
            (TopicOffsets(TopicName("orders"), None, make_offset_columns([(0, 5, -1, "")])),),
        )
    )
    (group,) = server.runtime.groups()
    epoch = str(group.group_epoch)
    listed = (await server.run("group", "list")).out.splitlines()
    assert [line.split() for line in listed] == [
        ["GROUP", "TYPE", "STATE", "#MEMBERS", "GROUP-EPOCH"],
        ["billing", "Consumer", "Stable", "1", epoch],
        ["nightly", "Classic", "Empty", "0", "0"],
    ]
    described = (await server.run("group", "describe", "billing")).out.splitlines()
    assert described[0].startswith(f"billing: Consumer, Stable, group epoch {epoch}, target assign")
    row = dict(zip(described[1].split(), described[2].split(), strict=True))
    assert row["CONSUMER-ID"] == "m1"
    assert row["CLIENT-ID"] == "client-7"
    assert row["CURRENT-EPOCH"] == epoch
    assert row["STATE"] == "STABLE"
    assert row["CURRENT-ASSIGNMENT"] == row["TARGET-ASSIGNMENT"] == "orders:0,1,2"
    empty = (await server.run("group", "describe", "nightly")).out.splitlines()
    assert empty[1] == "Group nightly has no active members."


def test_a_subscription_is_its_names_and_its_pattern() -> None:
    member = admin_pb2.GroupMember(subscribed_topic_names=["a", "b"])
    assert render_subscription(member) == "a,b"
    member.subscribed_topic_regex = "x-.*"
    assert render_subscription(member) == "a,b,/x-.*/"
    assert render_subscription(admin_pb2.GroupMember()) == ""
