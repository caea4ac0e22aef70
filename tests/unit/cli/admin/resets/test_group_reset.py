"""`muster group reset` and `seek` against a real server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.commands.consumer import ConsumerGroupLeave
from model.commands.resets import DescribeReset
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId
from tests.support.memory import MemoryLogStore
from tests.support.service.given_ends import GivenEnds
from tests.unit.cli.admin.test_admin_commands import CALLER, Result, Server
from tests.unit.cli.admin.test_group_administration import commit, join, list_offsets


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Orders has logs of 100 to 1,000 and 200 to 2,000; nothing is known of payments."""
    runtime = Runtime(MemoryLogStore(8), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    ends = GivenEnds(orders={0: 1_000, 1: 2_000})
    grpc = GrpcServer(runtime, AllowAll(), GrpcSettings(), end_offsets=ends)
    port = await grpc.start("127.0.0.1", 0)
    found = Server(runtime, f"127.0.0.1:{port}")
    await found.run("topic", "create", "orders=2", "payments=2")
    await commit(found, "g", "orders", 0, 1)
    yield found
    await grpc.stop(0)
    await runtime.stop()


async def reset(server: Server, *arguments: str) -> Result:
    return await server.run("group", "reset", "g", *arguments)


async def set_to(server: Server, *arguments: str) -> dict[str, int]:
    done = await reset(server, *arguments, "--yes", "-o", "json")
    assert (done.exit_code, done.error.splitlines()[-1:]) == (
        0,
        [f"set: {len(json.loads(done.out)['offsets'])}"],
    ), done
    return {f"{topic}-{n}": int(at) for topic, n, at in await list_offsets(server, "g")}


ALL = ("--all-topics", "--clamp")


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (("--to-earliest",), (100, 200)),
        (("--to-latest",), (1_000, 2_000)),
        (("--to-current",), (100, 200)),
        (("--to-offset", "1500"), (1_000, 1_500)),
        (("--to-offset", "0"), (100, 200)),
        (("--shift-by", "70"), (110, 200)),
        (("--shift-by", "0"), (100, 200)),
        (("--shift-by", "-5"), (100, 200)),
        (("--to-datetime", "1970-01-01T00:00:00.300Z"), (300, 300)),
        (("--to-datetime", "1500"), (1_000, 1_500)),
        (("--by-duration", "P1D"), (1_000, 2_000)),
    ],
)
async def test_strategies(
    server: Server, strategy: tuple[str, ...], expected: tuple[int, int]
) -> None:
    found = await set_to(server, *strategy, *ALL)
    assert found == {"orders-0": expected[0], "orders-1": expected[1]}


async def test_some_partitions_are_set_and_the_others_stay(server: Server) -> None:
    assert await set_to(server, "--topic", "orders:1", "--to-offset", "777") == {
        "orders-0": 40,
        "orders-1": 777,
    }
    done = await server.run("group", "seek", "g", "orders:0", "--to", "500", "--yes")
    assert done.exit_code == 0
    await server.run("group", "seek", "g", "orders:0", "--to", "-50", "--yes")
    await server.run("group", "seek", "g", "orders:1", "--to", "end", "--yes")
    assert await list_offsets(server, "g") == [["orders", "0", "450"], ["orders", "1", "2000"]]
    await server.run("group", "seek", "g", "orders:0", "--to", "@250", "--yes")
    assert (await list_offsets(server, "g"))[0] == ["orders", "0", "250"]


async def test_a_plan_goes_to_a_file_and_back_and_kafkas_with_groups_is_read(
    server: Server, tmp_path: Path
) -> None:
    planned = await reset(server, "--all-topics", "--to-latest", "--dry-run", "--export")
    assert planned.out == "orders,0,1000\norders,1,2000\n"
    assert (await list_offsets(server, "g"))[0] == ["orders", "0", "40"]
    path = tmp_path / "plan.csv"
    path.write_text(planned.out)
    assert await set_to(server, "--from-file", str(path)) == {"orders-0": 1_000, "orders-1": 2_000}
    path.write_text("g,orders,0,600\nother,orders,0,7\n")
    assert (await set_to(server, "--from-file", str(path)))["orders-0"] == 600
    for text in ("orders,0\n", "orders,x,1\n", "orders,0,1\norders,0,2\n", "", "other,orders,0,7"):
        path.write_text(text)
        assert (await reset(server, "--from-file", str(path), "--yes")).exit_code == 2


async def test_the_offsets_of_another_group(server: Server) -> None:
    await commit(server, "other", "orders", 1)
    await server.run("group", "seek", "other", "orders:1", "--to", "900", "--yes")
    assert await set_to(server, "--to-group", "other") == {"orders-0": 40, "orders-1": 900}
    unknown = await reset(server, "--to-group", "none", "--yes")
    assert (unknown.exit_code, "no committed offsets" in unknown.error) == (4, True)


async def test_a_preview_changes_nothing_and_shows_both(server: Server) -> None:
    tried = await reset(server, "--topic", "orders", "--to-offset", "500", "--dry-run")
    assert tried.out.splitlines()[1].split() == [
        *("g", "orders", "0", "500", "40", "100", "1000", "-")
    ]
    assert tried.error == "would be set: 2\n"
    unasked = await reset(server, "--topic", "orders", "--to-offset", "500")
    assert (unasked.exit_code, "--yes" in unasked.error) == (2, True)
    assert (await list_offsets(server, "g"))[0] == ["orders", "0", "40"]


async def test_bad_input_changes_nothing_and_says_what_to_do(server: Server) -> None:
    orders = ("--topic", "orders", "--yes")
    beyond = await reset(server, *orders, "--to-offset", "1500")
    assert beyond.exit_code == 4
    assert beyond.error == (
        "OFFSET_OUT_OF_RANGE: orders-0 has no position 1500, its log is 100 to 1000: with clamp "
        "the nearest is taken."
    )
    for exit_code, arguments in (
        (3, ("--topic", "none", "--to-latest", "--yes")),
        (3, ("--topic", "orders:7", "--to-latest", "--yes")),
        (4, ("--topic", "payments", "--to-earliest", "--yes")),
        (4, ("--topic", "payments", "--shift-by", "5", "--yes")),
        (2, (*orders,)),
        (2, (*orders, "--to-latest", "--to-earliest")),
        (2, ("--to-latest", "--yes")),
        (2, (*orders, "--by-duration", "5 minutes")),
        (2, (*orders, "--to-datetime", "yesterday")),
    ):
        failed = await reset(server, *arguments)
        assert (failed.exit_code, failed.error.count("\n")) == (exit_code, 0), (arguments, failed)
    missing = await server.run("group", "reset", "none", *orders, "--to-latest")
    assert (missing.exit_code, "does not exist" in missing.error) == (3, True)
    nowhere = await server.run("group", "seek", "g", "orders:0", "--to", "middle", "--yes")
    assert nowhere.exit_code == 2
    assert await list_offsets(server, "g") == [["orders", "0", "40"], ["orders", "1", "41"]]
    # Where the records are not here, any offset may be right.
    assert (await set_to(server, "--topic", "payments", "--to-offset", "5"))["payments-1"] == 5
    created = await server.run("group", "reset", "none", *orders, "--to-latest", "--create")
    assert created.exit_code == 0
    assert (await list_offsets(server, "none"))[1] == ["orders", "1", "2000"]


async def test_a_reset_of_a_live_group_says_whom_it_waits_for_and_is_done_without_them(
    server: Server,
) -> None:
    await join(server, "g")
    tried = await reset(server, "--all-topics", "--to-latest", "--dry-run")
    assert (tried.exit_code, tried.error) == (0, "would be set: 2\n")
    late = await reset(server, "--all-topics", "--to-latest", "--yes", "--timeout", "200ms")
    assert late.exit_code == 5
    assert "goes on: m (client-7 on /127.0.0.1) has to give partitions up" in late.error
    again = await reset(server, "--all-topics", "--to-earliest", "--yes")
    assert (again.exit_code, "Another reset of group g goes on" in again.error) == (4, True)
    await server.runtime.call(ConsumerGroupLeave(CALLER, GroupId("g"), MemberId("m"), -1))
    assert (await server.runtime.call(DescribeReset(CALLER, GroupId("g")))).is_set
    assert await list_offsets(server, "g") == [["orders", "0", "1000"], ["orders", "1", "2000"]]
