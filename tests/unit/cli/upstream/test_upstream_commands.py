"""`muster upstream` against a real server, whose cluster moves groups when it is asked."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from cli.errors import ExitCode
from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId
from model.places import Place
from tests.support.memory import MemoryLogStore
from tests.support.service.fake_upstream import DESCRIPTION, STRANGER, FakeUpstream
from tests.unit.cli.admin.test_admin_commands import Result, invoke


@dataclass
class Fronted:
    """A running server in front of a cluster."""

    address: str
    upstream: FakeUpstream

    async def run(self, *arguments: str) -> Result:
        return await asyncio.to_thread(invoke, "upstream", *arguments, "--server", self.address)


@pytest.fixture
async def fronted() -> AsyncIterator[Fronted]:
    upstream = FakeUpstream()
    for name in ("billing", "shipping", "audit"):
        upstream.add(name, members=3)
    runtime = Runtime(MemoryLogStore(4), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    grpc = GrpcServer(runtime, AllowAll(), GrpcSettings(grpc_page_size_max=2), upstream=upstream)
    port = await grpc.start("127.0.0.1", 0)
    yield Fronted(f"127.0.0.1:{port}", upstream)
    await grpc.stop(0)
    await runtime.stop()


async def test_the_status_shows_the_cluster_and_each_group(fronted: Fronted) -> None:
    fronted.upstream.add("shipping", Place.MUSTER, 3)
    billing = fronted.upstream.groups[GroupId("billing")]
    fronted.upstream.groups[GroupId("billing")] = replace(
        billing, strangers=(STRANGER, STRANGER), error="2 members are in the way"
    )
    shown = await fronted.run("status")
    lines = shown.out.splitlines()
    assert lines[0] == "cluster abc (Kafka 3.9): 2 brokers, reachable"
    assert "  broker 1 at b1:9092, relay muster:9201" in lines
    assert [line.split()[:2] for line in lines[-3:]] == [
        ["audit", "upstream"],
        ["billing", "upstream"],
        ["shipping", "muster"],
    ]
    assert "old@10.0.0.7 (2)" in lines[-2]
    assert "2 members are in the way" in lines[-2]
    found = json.loads((await fronted.run("status", "--place", "muster", "-o", "json")).out)
    assert [group["place"] for group in found["groups"]] == ["muster"]
    assert found["cluster"]["release"] == "3.9"


async def test_the_status_says_what_is_wrong_with_the_cluster(fronted: Fronted) -> None:
    fronted.upstream.description = replace(
        DESCRIPTION, is_reachable=False, fault="no broker answers"
    )
    shown = await fronted.run("status")
    assert shown.exit_code == 0
    assert "NOT REACHABLE" in shown.out
    assert "fault: no broker answers" in shown.out.splitlines()


async def test_groups_are_taken_and_released(fronted: Fronted) -> None:
    tried = await fronted.run("take", "billing", "--dry-run", "-o", "csv")
    assert (tried.exit_code, tried.error) == (0, "")
    assert tried.out.splitlines()[1:] == ["billing,upstream,0,3,,ok"]
    assert fronted.upstream.moved == [("take", "billing", True)]
    done = await fronted.run("take", "--pattern", "(bill|shipp)ing", "--yes", "-o", "csv")
    assert [line.split(",")[:2] for line in done.out.splitlines()[1:]] == [
        ["billing", "muster"],
        ["shipping", "muster"],
    ]
    assert sorted(line.split("  ")[1] for line in done.error.splitlines()) == [
        "billing: taken",
        "shipping: taken",
    ]
    quiet = await fronted.run("release", "--all", "--yes", "--quiet")
    assert (quiet.exit_code, quiet.error) == (0, "")
    assert fronted.upstream.find_places() == {}


async def test_it_asks_before_it_moves_and_shows_what_would_happen(fronted: Fronted) -> None:
    unasked = await fronted.run("take", "billing")
    assert unasked.exit_code == ExitCode.USAGE
    assert "--yes" in unasked.error
    assert fronted.upstream.moved == [("take", "billing", True)]


async def test_who_is_in_the_way_is_said_in_one_line_for_each_group(fronted: Fronted) -> None:
    fronted.upstream.in_the_way = {GroupId("billing")}
    both = await fronted.run("take", "billing", "audit", "--yes")
    assert both.exit_code == ExitCode.PRECONDITION
    assert "old@10.0.0.7" in both.out
    assert both.error == (
        "billing: NON_EMPTY_GROUP: 1 member reaches the cluster directly: old (/10.0.0.7)"
    )
    assert fronted.upstream.find_places() == {"audit": Place.MUSTER}
    # Nothing could be done, so it is not asked either.
    unasked = await fronted.run("take", "billing")
    assert "reaches the cluster directly" in unasked.error


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["take"], ExitCode.USAGE, "name groups, or give --pattern"),
        (["take", "g", "--pattern", "g"], ExitCode.USAGE, "one of both"),
        (["take", "--pattern", "(", "--yes"], ExitCode.USAGE, "not a valid regular expression"),
        (["take", "--pattern", "none", "--yes"], ExitCode.NOT_FOUND, "no such group"),
        (["release", "--yes"], ExitCode.USAGE, "name groups, or give --all"),
        (["release", "--all", "--yes"], ExitCode.NOT_FOUND, "no such group"),
        (["status", "--place", "here"], ExitCode.USAGE, "'here' is not one of upstream"),
    ],
)
async def test_mistakes_are_said_in_one_line(
    fronted: Fronted, arguments: list[str], code: ExitCode, said: str
) -> None:
    result = await fronted.run(*arguments)
    assert (result.exit_code, len(result.error.splitlines())) == (code, 1)
    assert said in result.error
    assert fronted.upstream.find_places() == {}
