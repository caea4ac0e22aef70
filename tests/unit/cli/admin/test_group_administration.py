"""`muster group delete`, `muster config` for groups, and `muster txn` against a real server."""

import json

import pytest
from typer.testing import CliRunner

from cli.main import app
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.commands.transactions import TxnOffsetCommit
from model.ids import GroupId, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from tests.unit.cli.admin.test_admin_commands import CALLER, Server, server

__all__ = ("server",)


def offsets(topic: str, *partitions: int) -> tuple[TopicOffsets, ...]:
    rows = make_offset_columns((number, 40 + number, -1, "") for number in partitions)
    return (TopicOffsets(TopicName(topic), None, rows),)


async def commit(server: Server, group: str, topic: str, *partitions: int) -> None:
    command = OffsetCommit(CALLER, GroupId(group), MemberId(""), None, offsets(topic, *partitions))
    await server.runtime.call(command)


async def join(server: Server, group: str, *topics: str) -> None:
    await server.runtime.call(
        ConsumerGroupHeartbeat(
            CALLER,
            GroupId(group),
            MemberId("m"),
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=tuple(map(TopicName, topics or ("orders",))),
            owned=(),
        )
    )


async def list_offsets(server: Server, group: str) -> list[list[str]]:
    shown = await server.run("group", "offsets", group, "-o", "csv")
    return [line.split(",")[1:4] for line in shown.out.splitlines()[1:]]


async def test_groups_are_deleted_that_are_empty(server: Server) -> None:
    await server.run("topic", "create", "orders=2")
    for group in ("a", "b"):
        await commit(server, group, "orders", 0, 1)
    await join(server, "live")
    tried = await server.run("group", "delete", "a", "b", "--dry-run")
    assert (tried.exit_code, tried.error) == (0, "would be deleted: 2\n")
    assert len(await list_offsets(server, "a")) == 2
    unasked = await server.run("group", "delete", "a")
    assert unasked.exit_code == 2
    assert "--yes" in unasked.error
    done = await server.run("group", "delete", "a", "b", "a", "--yes")
    assert (done.exit_code, done.out, done.error) == (0, "", "deleted: 2\n")
    missing = await server.run("group", "delete", "a", "--yes")
    assert missing.exit_code == 3
    assert missing.error == (
        "a: GROUP_ID_NOT_FOUND: The group a does not exist: "
        "`muster group list` shows the groups that there are"
    )
    live = await server.run("group", "delete", "live", "--yes", "--quiet")
    assert (live.exit_code, live.error) == (
        4,
        "live: NON_EMPTY_GROUP: The group live is not empty: its members have to leave first "
        "(`muster group describe` shows them)",
    )
    assert (await server.run("group", "delete", "live", "none", "--yes")).exit_code == 1


async def test_offsets_are_deleted_of_what_nobody_subscribes_to(server: Server) -> None:
    await server.run("topic", "create", "orders=3", "payments=3")
    await commit(server, "g", "orders", 0)
    await commit(server, "g", "payments", 0, 1, 2)
    await join(server, "g")
    tried = await server.run("group", "delete-offsets", "g", "--topic", "payments", "--dry-run")
    assert (tried.exit_code, tried.error) == (0, "would be deleted: 3\n")
    done = await server.run("group", "delete-offsets", "g", "--topic", "payments:0,2", "--yes")
    assert (done.exit_code, done.error) == (0, "deleted: 2\n")
    rest = [["orders", "0", "40"], ["payments", "1", "41"]]
    assert await list_offsets(server, "g") == rest
    refused = await server.run("group", "delete-offsets", "g", "--topic", "orders", "--yes")
    assert refused.exit_code == 4
    assert refused.error == (
        "orders-0: GROUP_SUBSCRIBED_TO_TOPIC: a member subscribes to the topic"
    )
    typed = await server.run("group", "delete-offsets", "g", "--topic", "paymets", "--yes")
    assert (typed.exit_code, typed.error) == (3, "g has no committed offsets for paymets")
    unknown = await server.run("group", "delete-offsets", "g", "--topic", "none:1", "--yes")
    assert unknown.exit_code == 3
    none = await server.run("group", "delete-offsets", "no", "--topic", "orders:0", "--yes")
    assert none.exit_code == 3
    assert await list_offsets(server, "g") == rest


async def test_a_group_that_is_not_there_has_no_offsets_to_show(server: Server) -> None:
    await server.run("topic", "create", "orders=3")
    await join(server, "g")
    nothing = await server.run("group", "offsets", "g")
    assert (nothing.exit_code, len(nothing.out.splitlines())) == (0, 1)
    missing = await server.run("group", "offsets", "typo")
    assert missing.exit_code == 3
    assert missing.error is not None
    assert "GROUP_ID_NOT_FOUND" in missing.error


async def test_topic_ids_are_spelt_as_topics_are_listed(server: Server) -> None:
    await server.run("topic", "create", *(f"t{number}=1" for number in range(30)))
    await join(server, "g", *(f"t{number}" for number in range(30)))
    shown = json.loads((await server.run("group", "describe", "g", "-o", "json")).out)
    (member,) = shown["members"]
    topics = (await server.run("topic", "list", "-o", "csv")).out
    for topic in member["target_assignment"]:
        assert topic["topic_id"] in topics


@pytest.mark.parametrize(
    "topics", [["a:"], ["a:x"], [":1"], ["a", "a:1"], ["a:99999999999"], ["a:-1"]]
)
def test_offsets_that_cannot_be_meant_are_a_usage_error(topics: list[str]) -> None:
    options = [word for topic in topics for word in ("--topic", topic)]
    result = CliRunner().invoke(app, ["group", "delete-offsets", "g", *options])
    assert getattr(result.exception, "exit_code", None) == 2


async def test_settings_of_groups(server: Server) -> None:
    done = await server.run(
        "config", "set", "-g", "g", "consumer.max.size=3", "offsets.retention.minutes=5"
    )
    assert (done.exit_code, done.error) == (0, "set: 2\n")
    shown = await server.run("config", "get", "-g", "g", "-o", "csv")
    rows = {line.split(",")[0]: line for line in shown.out.splitlines()}
    assert rows["consumer.max.size"] == "consumer.max.size,3,group,2147483647"
    assert rows["consumer.session.timeout.ms"] == "consumer.session.timeout.ms,45000,default,45000"
    tried = await server.run("config", "set", "--dry-run", "-g", "g", "consumer.max.size=0")
    assert tried.exit_code == 2
    assert tried.error == (
        "INVALID_CONFIG: Invalid value 0 for configuration consumer.max.size: Value must be at "
        "least 1"
    )
    assert (await server.run("config", "set", "-g", "g", "consumer.max.size")).exit_code == 2
    assert (await server.run("config", "set", "-g", "g", "no.such=1")).exit_code == 2
    undone = await server.run("config", "unset", "-g", "g", "consumer.max.size")
    assert (undone.exit_code, undone.error) == (0, "unset: 1\n")
    again = await server.run("config", "unset", "-g", "g", "consumer.max.size")
    assert (again.exit_code, again.error) == (0, "unset: 0\n")
    shown = await server.run("config", "get", "-g", "g", "-o", "json")
    content = json.loads(shown.out)
    assert content["group_id"] == "g"
    own = [row["name"] for row in content["configs"] if row["source"] == "group"]
    assert own == ["offsets.retention.minutes"]


async def begin(server: Server, producer_id: int, *groups: str) -> None:
    for group in groups:
        command = TxnOffsetCommit(
            CALLER, GroupId(group), ProducerId(producer_id), 2, offsets("orders", 0, 1)
        )
        await server.runtime.call(command)


async def list_transactions(server: Server) -> list[list[str]]:
    shown = await server.run("txn", "list", "-o", "csv")
    return sorted(
        [line.split(",")[index] for index in (0, 1, 4, 5)] for line in shown.out.splitlines()[1:]
    )


async def test_transactions_are_listed_and_ended(server: Server) -> None:
    await server.run("topic", "create", "orders=2")
    assert await list_transactions(server) == []
    await begin(server, 7, "a", "b")
    await begin(server, 8, "a")
    assert await list_transactions(server) == [
        ["7", "2", "a", "2"],
        ["7", "2", "b", "2"],
        ["8", "2", "a", "2"],
    ]
    shown = json.loads((await server.run("txn", "list", "-o", "json")).out)["transactions"]
    assert {int(each["times_out_at_ms"]) - int(each["since_ms"]) for each in shown} == {900_000}
    unasked = await server.run("txn", "abort", "7")
    assert unasked.exit_code == 2
    assert "--yes" in unasked.error
    assert len(await list_transactions(server)) == 3
    aborted = await server.run("txn", "abort", "7", "--yes")
    assert (aborted.exit_code, aborted.error) == (0, "aborted in log partitions: 2\n")
    assert await list_offsets(server, "a") == []
    committed = await server.run("txn", "commit", "8", "--yes", "--quiet")
    assert (committed.exit_code, committed.error) == (0, "")
    assert await list_offsets(server, "a") == [["orders", "0", "40"], ["orders", "1", "41"]]
    again = await server.run("txn", "commit", "8", "--yes")
    assert (again.exit_code, again.error) == (3, "producer 8 has no open transaction")


async def test_a_transaction_is_ended_in_one_partition(server: Server) -> None:
    await server.run("topic", "create", "orders=2")
    await begin(server, 7, "a", "b")
    place = server.runtime.partition_of(GroupId("a"))
    assert place != server.runtime.partition_of(GroupId("b"))
    done = await server.run("txn", "commit", "7", "--partition", str(place), "--yes")
    assert (done.exit_code, done.error) == (0, "committed in log partitions: 1\n")
    assert await list_transactions(server) == [["7", "2", "b", "2"]]


def test_what_will_happen_is_said_in_one_line() -> None:
    from cli.admin.txn_commands import render_effect
    from muster.v1 import admin_pb2

    waiting = [admin_pb2.PendingOffset(group_id=group) for group in ("a", "a", "b")]
    listed = [admin_pb2.Transaction(producer_id=7, offsets=waiting)]
    assert render_effect(listed, False) == (
        "Abort the transaction of producer 7: 3 offsets of 2 groups will be dropped."
    )
    assert render_effect(listed, True).endswith("will be committed.")
