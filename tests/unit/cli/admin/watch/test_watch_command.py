"""`muster group watch` against a real server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace

import pytest

from cli.admin.watch.group_changes import Change
from cli.admin.watch.group_stream import open_group_stream
from cli.admin.watch.looks import AskedLooks, ToldLooks
from cli.admin.watch.watching import watch
from cli.admin_client import connect
from model.commands.consumer import ConsumerGroupLeave
from model.commands.groups import DeleteGroup
from model.ids import GroupId, MemberId
from muster.v1 import admin_pb2
from tests.unit.cli.admin.group.test_group_list import join
from tests.unit.cli.admin.test_admin_commands import CALLER, Server, server
from tests.unit.cli.admin.test_group_administration import commit

__all__ = ("server",)


def leave(member_id: str) -> ConsumerGroupLeave:
    return ConsumerGroupLeave(CALLER, GroupId("g"), MemberId(member_id))


class Steps:
    """Between two looks, one step of what happens in the group."""

    def __init__(self, *steps: Callable[[], Awaitable[object]]) -> None:
        self.told: list[list[str]] = []
        self._steps = list(steps)
        self._loop = asyncio.get_running_loop()

    def begin(self, group: admin_pb2.Group) -> None:
        self.told.append([group.group_id])

    def tell(self, group: admin_pb2.Group, changes: Sequence[Change]) -> None:
        self.told.append([change.text for change in changes])

    def note(self, text: str) -> None:
        raise AssertionError(text)

    def pause(self) -> None:
        async def run() -> None:
            await self._steps.pop(0)()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)


async def test_what_happens_is_told(server: Server) -> None:
    await server.run("topic", "create", "orders=4")
    await join(server, "g", "m1")
    steps = Steps(
        lambda: join(server, "g", "m2"),
        lambda: server.run("topic", "grow", "orders=6", "--yes"),
        lambda: asyncio.sleep(0),
        lambda: server.runtime.call(leave("m2")),
        lambda: server.runtime.call(leave("m1")),
        lambda: server.runtime.call(DeleteGroup(CALLER, GroupId("g"))),
    )

    def look() -> None:
        with connect(server.address, 30.0) as client:
            looks = AskedLooks(
                lambda: client.describe_group("g").group, 1.0, lambda: 0.0, lambda _: steps.pause()
            )
            watch(looks, steps, now_s=lambda: 0.0, patience_s=1.0)

    await asyncio.to_thread(look)
    begun, joined, grown, still, left, empty, gone = steps.told
    assert (begun, still, gone) == (["g"], [], ["g is gone"])
    assert any(line.startswith("m2 joined (client ") for line in joined)
    assert any(line.startswith("m2 waits for orders-") for line in joined)
    assert any(line.startswith("group epoch ") for line in grown)
    assert "m2 is gone" in left
    assert "m1 is gone; it had orders-0, orders-1, orders-2, orders-3" in empty


async def test_the_server_tells_of_each_change(server: Server) -> None:
    await server.run("topic", "create", "orders=4")
    await join(server, "g", "m1")
    steps = Steps(
        lambda: join(server, "g", "m2"),
        lambda: server.runtime.call(leave("m2")),
        lambda: server.runtime.call(leave("m1")),
        lambda: server.runtime.call(DeleteGroup(CALLER, GroupId("g"))),
    )

    def describe() -> admin_pb2.Group:
        raise AssertionError("the server is not asked")

    def look() -> None:
        asked = AskedLooks(describe, 1.0, lambda: 0.0, describe)  # type: ignore[arg-type]
        with connect(server.address, 30.0) as client:
            looks = ToldLooks(
                lambda: open_group_stream(client, "g", lambda: 0.0), asked, time.sleep
            )
            looks.pause = steps.pause  # type: ignore[method-assign]
            watch(looks, steps, now_s=lambda: 0.0, patience_s=1.0)

    await asyncio.to_thread(look)
    told = [line for lines in steps.told for line in lines]
    seen = [told.index(line) for line in ("g", "m2 is gone", "g is gone")]
    assert seen == sorted(seen)
    assert any(line.startswith("m2 joined (client ") for line in told)


def between_looks(monkeypatch: pytest.MonkeyPatch, act: Callable[[float], None]) -> None:
    """What the command does in place of sleeping."""
    clocks = SimpleNamespace(sleep=act, monotonic=time.monotonic, time=time.time)
    monkeypatch.setattr("cli.admin.watch.watch_command.time", clocks)


async def test_the_command_ends_with_the_group(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.run("topic", "create", "orders=1")
    await commit(server, "g", "orders", 0)
    loop = asyncio.get_running_loop()
    slept: list[float] = []

    def delete(seconds: float) -> None:
        slept.append(seconds)
        deleted = server.runtime.call(DeleteGroup(CALLER, GroupId("g")))
        asyncio.run_coroutine_threadsafe(deleted, loop).result(30)

    between_looks(monkeypatch, delete)
    result = await server.run("group", "watch", "g", "--interval", "250ms", "-o", "jsonl")
    assert (result.exit_code, slept) == (0, [0.25])
    first, last = [json.loads(line) for line in result.out.splitlines()]
    assert (first["change"], first["group"]["state"]) == ("described", "GROUP_STATE_EMPTY")
    assert (last["change"], last["text"], last["group_id"]) == ("group_gone", "g is gone", "g")


async def test_ctrl_c_is_exit_code_130(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    await server.run("topic", "create", "orders=1")
    await commit(server, "g", "orders", 0)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    between_looks(monkeypatch, interrupt)
    result = await server.run("group", "watch", "g", "--interval", "1s")
    assert (result.exit_code, result.error) == (130, "")
    (line,) = result.out.splitlines()
    assert line.endswith(
        "  g: Classic, Empty, generation 0, protocol type -, protocol -, members 0"
    )


async def test_a_group_that_is_not_there_is_exit_code_3(server: Server) -> None:
    missing = await server.run("group", "watch", "none")
    assert (missing.exit_code, missing.out) == (3, "")
    assert "GROUP_ID_NOT_FOUND" in missing.error


async def test_a_server_that_is_not_there_is_exit_code_5(server: Server) -> None:
    lost = await Server(server.runtime, "127.0.0.1:1").run("group", "watch", "g")
    assert lost.exit_code == 5


@pytest.mark.parametrize("options", [["--interval", "1ms"], ["--interval", "x"], ["-o", "csv"]])
async def test_what_is_asked_wrongly_is_exit_code_2(server: Server, options: list[str]) -> None:
    refused = await server.run("group", "watch", "g", *options)
    assert (refused.exit_code, refused.out) == (2, "")
