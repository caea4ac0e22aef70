"""Members that an administrator removes: what confluent-kafka (librdkafka) and the SDK then do."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

import muster
from tests.interop.confluent_client import ConfluentClient
from tests.server import MusterServer
from tests.support.cli.invoking import Result, invoke_app
from tests.support.waiting import poll_until, until

GROUP: Final = "confluent"
ALL: Final = {f"orders-{number}" for number in range(4)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    settings = {"group.initial.rebalance.delay.ms": 0}
    with MusterServer(tmp_path / "data", topics={"orders": 4}, settings=settings) as running:
        yield running


def run(server: MusterServer, *words: str) -> Result:
    return invoke_app(*words, "--server", server.grpc)


def find_member(server: MusterServer, group: str, client_id: str) -> str:
    shown = run(server, "group", "describe", group, "--members", "-o", "csv")
    rows = csv.DictReader(io.StringIO(shown.out))
    return next(row["CONSUMER-ID"] for row in rows if row["CLIENT-ID"] == client_id)


def list_causes(server: MusterServer) -> list[dict[str, Any]]:
    """What the server's log says about rebalances by an administrator."""
    lines = (line for line in server.output().splitlines() if line.startswith("{"))
    return [line for line in map(json.loads, lines) if line.get("cause") == "administrator"]


def share(consumers: Sequence[ConfluentClient]) -> None:
    poll_until(consumers, lambda: all(len(each.held) == 2 for each in consumers), "they share")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_a_member_that_does_nothing_is_removed_and_comes_back(
    server: MusterServer, protocol: str
) -> None:
    settings = {"group.protocol": protocol}
    if protocol == "classic":
        settings["partition.assignment.strategy"] = "cooperative-sticky"
    one, two = (ConfluentClient(server, name, settings=settings) for name in ("one", "two"))
    share((one, two))
    member_id = find_member(server, GROUP, "one")
    tried = run(server, "group", "remove-member", GROUP, "--member", member_id, "--dry-run")
    assert tried.exit_code == 0, tried
    done = run(
        server, "group", "remove-member", GROUP, "--member", member_id, "--reason", "idle", "--yes"
    )
    assert (done.exit_code, done.out) == (0, tried.out), done

    # `one` is not polled: it has not yet told its application, and has not joined again.
    poll_until((two,), lambda: two.held == ALL, "the other one has all")
    lost = set(one.held)
    share((one, two))
    assert lost <= set(one.lost) | ALL - one.held
    assert find_member(server, GROUP, "one")
    if protocol == "consumer":
        (line,) = list_causes(server)
        assert (line["member_id"], line["client_id"]) == (member_id, "one")
        assert line["reason"] == "User:ANONYMOUS removes it: idle"
    for each in (one, two):
        each.consumer.close()


@pytest.mark.timeout(240)
async def test_a_static_member_of_the_sdk_is_told_and_joins_again(server: MusterServer) -> None:
    lost: list[object] = []

    async def note(partitions: object) -> None:
        lost.append(partitions)

    async with muster.Member(
        server.grpc,
        "billing",
        topics=["orders"],
        client_id="sdk",
        instance_id="pod-1",
        on_lost=note,
    ) as member:
        polling = asyncio.create_task(_poll(member))
        await until(lambda: len(member.assignment) == 4, "it has all")
        removed = await asyncio.to_thread(
            run, server, "group", "remove-member", "billing", "--instance", "pod-1", "--yes"
        )
        assert removed.exit_code == 0, removed
        await until(lambda: lost, "it is told")
        await until(lambda: len(member.assignment) == 4, "it has all again")
        assert await asyncio.to_thread(find_member, server, "billing", "sdk")
        polling.cancel()
    (line,) = list_causes(server)
    assert (line["instance_id"], line["client_id"]) == ("pod-1", "sdk")


async def _poll(member: muster.Member) -> None:
    async for _ in member.changes():
        pass
