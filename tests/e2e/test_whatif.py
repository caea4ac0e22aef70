"""`muster whatif` against a real server: the answer is what then happens to members of the SDK."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import muster
from tests.e2e.groups import GroupView, wait_for_group
from tests.e2e.test_silence import PATIENCE_S
from tests.groups import CHECKOUT
from tests.server import MusterServer

GROUP = "billing"
PAGE = (CHECKOUT / "docs" / "whatif.md").read_text()
NAMES = ("billing-1", "billing-2", "billing-3")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": 12}) as running:
        yield running


async def run(server: MusterServer, *words: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli", *words, "--server", server.grpc),
        cwd=CHECKOUT,
        stdout=PIPE,
        stderr=PIPE,
    )
    out, error = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), error.decode()


async def ask(server: MusterServer, *options: str) -> Any:
    code, out, error = await run(server, "whatif", GROUP, *options, "-o", "json")
    assert code == 0, error
    return json.loads(out)


async def wait_until_settled(server: MusterServer, names: set[str], partitions: int) -> GroupView:
    """Each partition has an owner, and all members have the epoch of the target."""
    return await wait_for_group(
        server.grpc,
        GROUP,
        lambda view: (
            view.members.keys() == names
            and len(view.owners) == partitions
            and view.state == "GROUP_STATE_STABLE"
        ),
        PATIENCE_S,
    )


@asynccontextmanager
async def joined(server: MusterServer, member_id: str) -> AsyncIterator[muster.Member]:
    """A member that does as it is told."""
    async with muster.Member(server.grpc, GROUP, topics=["orders"], member_id=member_id) as member:
        polling = asyncio.create_task(_poll(member))
        try:
            yield member
        finally:
            polling.cancel()


async def _poll(member: muster.Member) -> None:
    async for _ in member.changes():
        pass


async def join_in_order(server: MusterServer, stack: AsyncExitStack) -> dict[str, AsyncExitStack]:
    """The three members, each with the stack that ends it."""
    stacks = {}
    for count, name in enumerate(NAMES, 1):
        stacks[name] = await stack.enter_async_context(AsyncExitStack())
        await stacks[name].enter_async_context(joined(server, name))
        await wait_until_settled(server, set(NAMES[:count]), 12)
    return stacks


async def test_the_answer_is_what_then_happens(server: MusterServer) -> None:
    async with AsyncExitStack() as stack:
        members = await join_in_order(server, stack)
        options = ("--add", "1", "--remove", "billing-2", "--partitions", "orders=16")
        before = (await wait_until_settled(server, set(NAMES), 12)).owners
        answer = await ask(server, *options)
        assert (await wait_until_settled(server, set(NAMES), 12)).owners == before
        new = next(each["member_id"] for each in answer["members"] if each["before"] is None)

        await stack.enter_async_context(joined(server, new))
        await members["billing-2"].aclose()
        assert (await run(server, "topic", "grow", "orders=16", "--yes"))[0] == 0
        names = {"billing-1", "billing-3", new}
        after = (await wait_until_settled(server, names, 16)).owners

        counts = {name: list(after.values()).count(name) for name in names}
        told = {each["member_id"]: each["after"] for each in answer["members"]}
        assert told == {**counts, "billing-2": None}


@pytest.mark.parametrize("option", ["--add", "--remove", "--partitions"])
async def test_one_change_moves_what_was_told(server: MusterServer, option: str) -> None:
    async with AsyncExitStack() as stack:
        members = await join_in_order(server, stack)
        before = (await wait_until_settled(server, set(NAMES), 12)).owners
        values = {"--add": "1", "--remove": "billing-1", "--partitions": "orders=15"}
        value = values[option]
        answer = await ask(server, option, value)
        names, partitions = set(NAMES), 12
        match option:
            case "--add":
                new = next(e["member_id"] for e in answer["members"] if e["before"] is None)
                await stack.enter_async_context(joined(server, new))
                names.add(new)
            case "--remove":
                await members[value].aclose()
                names.remove(value)
            case _:
                assert (await run(server, "topic", "grow", value, "--yes"))[0] == 0
                partitions = 15
        told = {
            (move["topic"], move["partition"]): (move["from"], move["to"])
            for move in answer["moves"]
        }
        expected = {**before, **{place: new for place, (_, new) in told.items()}}
        view = await wait_for_group(
            server.grpc,
            GROUP,
            lambda view: (
                view.members.keys() == names
                and view.owners == expected
                and len(expected) == partitions
                and view.state == "GROUP_STATE_STABLE"
            ),
            PATIENCE_S,
        )
        assert told == {
            place: (before.get(place), owner)
            for place, owner in view.owners.items()
            if before.get(place) != owner
        }


async def join_as_classic(server: MusterServer, stack: AsyncExitStack) -> GroupView:
    """Three classic members with eager assignors, which any client can lead."""
    for _ in NAMES:
        member = muster.ClassicMember(server.grpc, GROUP, topics=["orders"], assignors=["range"])
        await stack.enter_async_context(member)
        polling = asyncio.create_task(_poll_classic(member))
        stack.callback(polling.cancel)
    return await wait_for_group(
        server.grpc,
        GROUP,
        lambda view: (
            len(view.members) == len(NAMES)
            and len(view.owners) == 12
            and view.state == "GROUP_STATE_STABLE"
        ),
        PATIENCE_S,
    )


async def _poll_classic(member: muster.ClassicMember) -> None:
    async for _ in member.changes():
        pass


async def test_a_migration_moves_what_was_told(server: MusterServer) -> None:
    async with AsyncExitStack() as stack:
        before = await join_as_classic(server, stack)
        assert (await run(server, "whatif", GROUP))[0] == 3
        answer = await ask(server, "--protocol", "consumer", "--add", "1")
        told = {each["member_id"]: each["after"] for each in answer["members"]}
        (new,) = told.keys() - before.members.keys()
        await stack.enter_async_context(joined(server, new))
        after = (await wait_until_settled(server, set(told), 12)).owners
        assert told == {name: list(after.values()).count(name) for name in told}
        moved = {(move["topic"], move["partition"]) for move in answer["moves"]}
        assert len(moved) == sum(owner != before.owners[place] for place, owner in after.items())


async def test_the_way_back_is_told_by_an_assignor_of_the_clients(server: MusterServer) -> None:
    async with AsyncExitStack() as stack:
        await join_in_order(server, stack)
        before = (await wait_until_settled(server, set(NAMES), 12)).owners
        answer = await ask(server, "--protocol", "classic", "--assignor", "range")
        told = {(m["topic"], m["partition"]): m["to"] for m in answer["moves"]}
        ranges = {("orders", n): f"billing-{n // 4 + 1}" for n in range(12)}
        assert {**before, **told} == ranges
        code, _, error = await run(server, "whatif", GROUP, "--protocol", "classic")
        assert (code, error.count("\n")) == (2, 1)
        assert "name their assignor" in error
        kept = await ask(server, "--protocol", "classic", "--assignor", "cooperative-sticky")
        assert (kept["moves"], kept["rounds"]) == ([], 0)


async def test_the_example_of_the_page_is_what_is_printed(server: MusterServer) -> None:
    found = re.search(r"^```\n\$ muster (.*)\n((?:.*\n)*?)```", PAGE, re.MULTILINE)
    assert found is not None
    async with AsyncExitStack() as stack:
        await join_in_order(server, stack)
        code, out, error = await run(server, *found[1].split())
    assert (code, out) == (0, found[2]), error


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("nobody",), 3, "nobody"),
        ((GROUP, "--partitions", "nothing=3"), 3, "no topic nothing"),
        ((GROUP, "--partitions", "orders=1"), 2, "cannot be fewer"),
        ((GROUP, "--partitions", "orders"), 2, "NAME=PARTITIONS"),
        ((GROUP, "--remove", "ghost"), 4, "ghost is not a member"),
        ((GROUP, "--assignor", "best"), 2, "best is unknown"),
        ((GROUP, "--protocol", "share"), 2, "consumer or classic"),
        ((GROUP, "--protocol", "classic", "--assignor", "uniform"), 2, "unknown assignor"),
        ((GROUP, "--weights", "/nowhere"), 2, "cannot read /nowhere"),
    ],
)
async def test_what_is_wrong_is_said(
    server: MusterServer, words: tuple[str, ...], code: int, says: str
) -> None:
    async with joined(server, "billing-1"):
        await wait_until_settled(server, {"billing-1"}, 12)
        found, _, error = await run(server, "whatif", *words)
    assert (found, error.count("\n")) == (code, 1), error
    assert says in error
