"""`muster why` against a real server and real clients: who it was, what moved, who held it up."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import muster
from tests.e2e.test_silence import session_program
from tests.groups import CHECKOUT
from tests.interop.confluent_client import ConfluentClient
from tests.server import MusterServer
from tests.support.waiting import Patience, poll_until, until_answered

GROUP = "group"
"""Of ``session_program``."""
SESSION_TIMEOUT_MS = 3_000
WITHIN_S = 30.0
SETTINGS = {
    "group.consumer.min.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.consumer.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.consumer.min.heartbeat.interval.ms": 300,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.min.session.timeout.ms": 1_000,
    "group.initial.rebalance.delay.ms": 0,
}
CLASSIC = {
    "group.protocol": "classic",
    "heartbeat.interval.ms": 100,
    "session.timeout.ms": SESSION_TIMEOUT_MS,
}
Found = dict[str, Any]
Subscribe = Callable[[list[str]], None]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    topics = {"orders": 4, "payments": 2}
    with MusterServer(tmp_path / "data", topics=topics, settings=SETTINGS) as running:
        yield running


@contextmanager
def polled(
    server: MusterServer, client_id: str, group: str = GROUP, **settings: Any
) -> Iterator[Subscribe]:
    """A consumer of librdkafka that a thread polls, and closes at the end.

    Only that thread may call it: what is yielded has it subscribe to other topics.
    """
    wanted: SimpleQueue[list[str]] = SimpleQueue()
    client = ConfluentClient(server, client_id, group=group, settings=settings)
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            if not wanted.empty():
                client.consumer.subscribe(wanted.get())
            client.poll()
        client.consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield wanted.put
    finally:
        done.set()
        thread.join()


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


async def change(server: MusterServer, *words: str) -> None:
    code, _, error = await run(server, *words)
    assert code == 0, error


async def read(server: MusterServer, group: str = GROUP) -> list[Found]:
    """The rebalances, the last one first; none before the first member has joined."""
    code, out, error = await run(server, "why", group, "--limit", "50", "-o", "json")
    assert code in (0, 3), error
    found: list[Found] = json.loads(out)["rebalances"] if code == 0 else []
    return found


async def wait_for(
    server: MusterServer,
    causes: str | Sequence[str],
    check: Callable[[Found], bool] = lambda found: True,
    group: str = GROUP,
) -> Found:
    """The last rebalance with one of the causes; the last of all has converged by then."""
    wanted = (causes,) if isinstance(causes, str) else causes

    def find(told: list[Found]) -> Found | None:
        named = [each for each in told if each["cause"] in wanted and check(each)]
        return named[0] if named and told[0]["ending"] == "converged" else None

    told = await until_answered(
        lambda: read(server, group),
        lambda told: find(told) is not None,
        f"{causes} is told",
        patience=Patience(WITHIN_S),
    )
    found = find(told)
    assert found is not None
    return found


def of_client(client_id: str) -> Callable[[Found], bool]:
    return lambda found: found["client_id"] == client_id


@pytest.mark.timeout(180)
async def test_causes_of_consumers_on_the_kafka_wire(server: MusterServer) -> None:
    with polled(server, "a"):
        joined = await wait_for(server, "member_joined", of_client("a"))
        assert (joined["partitions_moved"], joined["client_host"]) == (4, "/127.0.0.1")
        with polled(server, "b") as subscribe:
            joined = await wait_for(server, "member_joined", of_client("b"))
            assert joined["partitions_moved"] == 2
            (held,) = joined["held_up"]
            assert (held["client_id"], held["step"]) == ("a", "revoking")
            assert 0 <= held["took_ms"] <= joined["ended_ms"] - joined["began_ms"]

            subscribe(["orders", "payments"])
            changed = await wait_for(server, "subscription_changed")
            assert changed["client_id"] == "b"
            assert changed["member_id"] == joined["member_id"]

            await change(server, "topic", "grow", "orders=6", "--yes")
            grown = await wait_for(server, "partitions_added")
            assert (grown["topic"], grown["member_id"]) == ("orders", None)

            await change(
                server, "group", "reset", GROUP, "--topic", "orders", "--to-offset", "0", "--yes"
            )
            reset = await wait_for(server, "administrator")
            assert reset["member_id"] is None

            other = "consumer.assignors=range,uniform"
            await change(server, "config", "set", "--group", GROUP, other)
            await wait_for(server, "assignor_changed")
        left = await wait_for(server, "member_left")
        assert left["client_id"] == "b"
        assert left["heartbeat_age_ms"] < SESSION_TIMEOUT_MS

    code, out, error = await run(server, "why", GROUP)
    assert code == 0, error
    assert "ago: member " in out.splitlines()[0]


@pytest.mark.timeout(120)
async def test_a_killed_member_and_a_topic_that_a_regular_expression_matches(
    server: MusterServer,
) -> None:
    async with muster.Member(server.grpc, GROUP, topic_regex="(orders|new.*)") as member:
        polling = asyncio.create_task(_poll(member))
        async with session_program(server) as (process, member_id):
            await wait_for(server, "member_joined", lambda found: found["member_id"] == member_id)
            process.kill()
            expired = await wait_for(server, "session_expired")
        assert expired["member_id"] == member_id
        assert expired["client_host"]
        assert SESSION_TIMEOUT_MS <= expired["heartbeat_age_ms"] <= SESSION_TIMEOUT_MS + 2_000
        assert expired["partitions_moved"] == 2

        await change(server, "topic", "create", "newest=3")
        created = await wait_for(server, "regex_resolved", lambda found: found["topic"] == "newest")
        assert created["reason"] == "(orders|new.*)"
        assert created["partitions_moved"] == 3
        polling.cancel()


@pytest.mark.timeout(180)
async def test_members_that_hang_are_removed_and_change_the_protocol(server: MusterServer) -> None:
    await _check_who_hangs(server, "hanging")
    await _check_who_is_removed(server, "removing")
    await _check_migrations(server, "migrating")


async def _check_who_hangs(server: MusterServer, group: str) -> None:
    """It heartbeats and keeps what others wait for; librdkafka may have left just before."""
    hung = ConfluentClient(server, "hung", group=group, settings={"max.poll.interval.ms": 4_000})
    try:
        await asyncio.to_thread(poll_until, [hung], lambda: len(hung.held) == 4)
        with polled(server, "b", group):
            gone = ("rebalance_timeout", "member_left")
            late = await wait_for(server, gone, of_client("hung"), group)
            assert late["client_host"] == "/127.0.0.1"
            assert late["heartbeat_age_ms"] < SESSION_TIMEOUT_MS
            assert late["partitions_moved"] == 4
            assert late["ended_ms"] >= late["began_ms"]
            assert [held["client_id"] for held in late["held_up"]] == ["b"]
    finally:
        hung.consumer.close()


async def _check_who_is_removed(server: MusterServer, group: str) -> None:
    with polled(server, "a", group), polled(server, "b", group):
        joined = await wait_for(server, "member_joined", lambda found: found["epoch"] >= 3, group)
        member_id = joined["member_id"]
        await change(
            server, "group", "remove-member", group, "--member", member_id,
            "--reason", "node is gone", "--yes",
        )  # fmt: skip
        removed = await wait_for(server, "administrator", group=group)
        assert removed["member_id"] == member_id
        assert (removed["client_id"], removed["client_host"]) == (joined["client_id"], "/127.0.0.1")
        assert removed["heartbeat_age_ms"] < SESSION_TIMEOUT_MS
        assert removed["partitions_moved"] == 2
        assert removed["ended_ms"] >= removed["began_ms"]
        assert "node is gone" in removed["reason"]


async def _check_migrations(server: MusterServer, group: str) -> None:
    classic = CLASSIC | {"partition.assignment.strategy": "cooperative-sticky"}
    with polled(server, "old", group, **classic):
        await wait_for(server, "member_joined", of_client("old"), group)
        with polled(server, "new", group):
            up = await wait_for(server, "migrated", group=group)
            assert (up["group_type"], up["client_id"]) == ("consumer", "new")
            assert up["partitions_moved"] == 2
            assert {held["client_id"] for held in up["held_up"]} <= {"old", "new"}
            assert up["held_up"]
        down = await wait_for(
            server, "migrated", lambda found: found["group_type"] == "classic", group
        )
        assert (down["client_id"], down["client_host"]) == ("new", "/127.0.0.1")
        assert down["member_id"] == up["member_id"]
        assert down["heartbeat_age_ms"] < SESSION_TIMEOUT_MS
        assert down["held_up"][0]["client_id"] == "old"


async def _poll(member: muster.Member) -> None:
    async for _ in member.changes():
        pass


@pytest.mark.timeout(120)
async def test_generations_of_a_classic_group(server: MusterServer) -> None:
    classic = CLASSIC | {"partition.assignment.strategy": "range"}
    with polled(server, "a", **classic):
        joined = await wait_for(server, "member_joined", of_client("a"))
        assert (joined["group_type"], joined["partitions_moved"]) == ("classic", 4)
        with polled(server, "b", **classic):
            await wait_for(server, "member_joined", of_client("b"))
        left = await wait_for(server, "member_left")
        assert (left["client_id"], left["client_host"]) == ("b", "/127.0.0.1")
        assert left["partitions_moved"] == 2
        assert {each["step"] for each in left["held_up"]} <= {"joining", "assigning"}
        assert left["epoch"] == left["epoch_before"] + 1


async def test_a_group_that_nobody_knows(server: MusterServer) -> None:
    for command in ("why", "timeline"):
        code, out, error = await run(server, command, "nobody")
        assert (code, out, error.count("\n")) == (3, "", 1), error
        assert "nobody" in error
