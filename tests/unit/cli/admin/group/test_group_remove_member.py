"""`muster group remove-member` against a real server, with members of both protocols."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from model.commands.classic import JoinGroup, JoinProtocol
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.errors import MemberIdRequired, UnknownMemberId
from model.ids import GroupId, InstanceId, MemberId, TopicName
from tests.unit.cli.admin.group.test_group_list import join, prepare
from tests.unit.cli.admin.test_admin_commands import CALLER, Result, Server, server

__all__ = ("server",)


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[Any]]:
    """What the server logs, which would else be among what the command prints."""
    with capture_logs() as entries:
        yield entries


async def beat(server: Server, group: str, member: str, epoch: int) -> None:
    beat = ConsumerGroupHeartbeat(CALLER, GroupId(group), MemberId(member), epoch)
    await server.runtime.call(beat)


async def members(server: Server, group: str) -> list[str]:
    shown = await server.run("group", "describe", group, "--members", "-o", "csv")
    assert shown.exit_code == 0, shown.error
    return [row["CONSUMER-ID"] for row in csv.DictReader(io.StringIO(shown.out))]


async def remove(server: Server, group: str, *options: str) -> Result:
    return await server.run("group", "remove-member", group, *options)


async def test_a_dry_run_shows_what_the_removal_then_does(server: Server) -> None:
    await prepare(server)
    tried = await remove(server, "big", "--member", "m1", "--dry-run", "-o", "csv")
    (row,) = csv.DictReader(io.StringIO(tried.out))
    assert row == {
        "GROUP": "big",
        "CONSUMER-ID": "m1",
        "GROUP-INSTANCE-ID": "",
        "HOST": "/127.0.0.1",
        "CLIENT-ID": "client-7",
        "#PARTITIONS": "4",
        "FREED-PARTITIONS": "orders:0,1,2,3",
    }
    assert tried.error == "would be removed: 1, left: 1\n"
    assert await members(server, "big") == ["m1", "m2"]

    done = await remove(server, "big", "--member", "m1", "--yes", "-o", "csv")
    assert (done.exit_code, done.out, done.error) == (0, tried.out, "removed: 1, left: 1\n")
    assert await members(server, "big") == ["m2"]
    await beat(server, "big", "m2", 3)
    shown = await server.run("group", "describe", "big", "--members", "--verbose", "-o", "csv")
    assert "orders:0,1,2,3" in shown.out


async def test_who_is_removed_is_told_so_and_may_join_again(
    server: Server, logged: list[Any]
) -> None:
    await prepare(server)
    done = await remove(server, "one", "--member", "m1", "--reason", "it hangs", "-y", "-q")
    assert (done.exit_code, done.error) == (0, "")
    line = logged[-1]
    assert (line["event"], line["cause"], line["member_id"], line["client_id"], line["reason"]) == (
        "rebalance",
        "administrator",
        "m1",
        "client-7",
        "User:ANONYMOUS removes it: it hangs",
    )
    with pytest.raises(UnknownMemberId):
        await beat(server, "one", "m1", 2)
    await join(server, "one", "m1")
    assert await members(server, "one") == ["m1"]


async def test_a_static_member_is_named_by_its_instance(server: Server) -> None:
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
    done = await remove(server, "static", "--instance", "i1", "--yes", "-o", "json")
    content = json.loads(done.out)
    assert (content["_command"], content["remaining"]) == ("group.remove-member", 0)
    (member,) = content["members"]
    assert (member["member_id"], member["instance_id"]) == ("m1", "i1")


async def test_a_classic_member_is_removed_too(server: Server) -> None:
    protocols = (JoinProtocol("range", b""),)
    worker = MemberId("w1")
    joining = JoinGroup(CALLER, GroupId("old"), None, worker, 10_000, 10_000, "connect", protocols)
    with pytest.raises(MemberIdRequired):
        await server.runtime.call(joining)
    done = await remove(server, "old", "--member", "w1", "--yes", "-o", "jsonl")
    assert (done.exit_code, done.error) == (0, "removed: 1, left: 0\n")
    assert json.loads(done.out)["member_id"] == "w1"


async def test_it_asks(server: Server) -> None:
    await prepare(server)
    unasked = await remove(server, "big", "--member", "m1")
    assert (unasked.exit_code, unasked.out) == (2, "")
    assert "--yes" in unasked.error
    assert await members(server, "big") == ["m1", "m2"]


async def test_a_group_that_changed_while_it_asked_is_left_as_it_is(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepare(server)
    asked: list[str | None] = []
    # Another member leaves while it waits for the answer.

    def answer(columns: object, rows: object, effect: str | None) -> None:
        asked.append(effect)
        leaving = ConsumerGroupLeave(CALLER, GroupId("big"), MemberId("m2"))
        asyncio.run_coroutine_threadsafe(server.runtime.call(leaving), loop).result(30)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr("cli.admin.group.group_remove_member.ask", answer)
    stale = await remove(server, "big", "--member", "m1")
    assert (stale.exit_code, stale.out) == (4, "")
    assert stale.error == (
        "POLICY_VIOLATION: The group big has changed since the preview: look at a new preview."
    )
    (effect,) = asked
    assert effect is not None
    assert "4 partitions become free: 1 member is left" in effect
    assert "may join again" in effect
    assert await members(server, "big") == ["m1"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("none", "--member", "m1"), 3, "GROUP_ID_NOT_FOUND"),
        (("big", "--member", "nobody"), 3, "Member nobody is not a member of group big: "),
        (("big", "--instance", "pod"), 3, "Instance id pod is unknown in group big: "),
        (("big", "--member", "m1", "--member", "nobody"), 3, "nobody"),
        (("loose", "--member", "m1"), 3, "Group loose has no members: "),
        (("big",), 2, "--member ID or --instance ID"),
        (("big", "--member", ""), 2, "set member_id or instance_id"),
        (("", "--member", "m1"), 2, "group_id is missing"),
    ],
)
async def test_whom_it_does_not_find_is_one_line(
    server: Server, options: tuple[str, ...], code: int, said: str
) -> None:
    await prepare(server)
    for rest in ("--yes", "--dry-run"):
        refused = await remove(server, *options, rest)
        assert (refused.exit_code, refused.out) == (code, "")
        assert said in refused.error
        assert len(refused.error.splitlines()) == 1
    assert await members(server, "big") == ["m1", "m2"]


async def test_a_server_that_is_not_there_is_exit_code_5(server: Server) -> None:
    lost = await remove(Server(server.runtime, "127.0.0.1:1"), "big", "--member", "m1", "--yes")
    assert lost.exit_code == 5
