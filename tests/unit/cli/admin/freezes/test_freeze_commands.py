"""`muster group freeze` and `resume` against a real server."""

import json
from collections.abc import AsyncIterator

import pytest

from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.commands.consumer import ConsumerGroupHeartbeat
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from tests.support.memory import MemoryLogStore
from tests.unit.cli.admin.test_admin_commands import CALLER, Result, Server
from tests.unit.cli.admin.test_group_administration import commit


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """The group g of member a, which has both partitions of orders."""
    runtime = Runtime(MemoryLogStore(8), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    grpc = GrpcServer(runtime, AllowAll(), GrpcSettings())
    port = await grpc.start("127.0.0.1", 0)
    found = Server(runtime, f"127.0.0.1:{port}")
    await found.run("topic", "create", "orders=2")
    await join(found, "a")
    yield found
    await grpc.stop(0)
    await runtime.stop()


async def join(server: Server, member: str) -> None:
    await server.runtime.call(
        ConsumerGroupHeartbeat(
            CALLER,
            GroupId("g"),
            MemberId(member),
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(TopicName("orders"),),
            owned=(),
        )
    )


async def describe(server: Server) -> dict[str, list[int]]:
    """The target of each member."""
    shown = await server.run("group", "describe", "g", "-o", "json")
    return {
        member["member_id"]: [
            partition
            for topic in member.get("target_assignment", ())
            for partition in topic["partitions"]
        ]
        for member in json.loads(shown.out)["members"]
    }


async def freeze(server: Server, *arguments: str) -> Result:
    return await server.run("group", "freeze", "g", *arguments)


async def resume(server: Server, *arguments: str) -> Result:
    return await server.run("group", "resume", "g", *arguments)


async def test_a_frozen_group_gives_newcomers_nothing_until_it_is_resumed(server: Server) -> None:
    done = await freeze(server, "--yes")
    assert (done.exit_code, done.error) == (0, "frozen\n")
    assert done.out.startswith("g: not frozen before, frozen after, at group epoch 2\n")
    await join(server, "b")
    assert await describe(server) == {"a": [0, 1], "b": []}
    previewed = json.loads((await resume(server, "--dry-run", "-o", "json")).out)
    assert await describe(server) == {"a": [0, 1], "b": []}
    done = await resume(server, "--yes")
    assert (done.exit_code, done.error) == (0, "resumed\n")
    assert (await describe(server)) == {"a": [0], "b": [1]}
    assert previewed["moves"] == [{"topic": "orders", "partition": 1, "from": "a", "to": "b"}]
    assert previewed["frozen"] == {"before": True, "after": False}
    assert previewed["what_if"]["balance"]["after"]["max"] == 1


async def test_previews_and_refused_questions_change_nothing(server: Server) -> None:
    tried = await freeze(server, "--dry-run")
    assert (tried.exit_code, tried.error) == (0, "would be frozen\n")
    assert "would be frozen after" in tried.out
    unasked = await freeze(server)
    assert (unasked.exit_code, "--yes" in unasked.error) == (2, True)
    await join(server, "b")
    assert await describe(server) == {"a": [0], "b": [1]}
    await freeze(server, "--yes")
    unasked = await resume(server)
    assert (unasked.exit_code, "--yes" in unasked.error) == (2, True)
    await join(server, "c")
    assert (await describe(server))["c"] == []


async def test_a_freeze_names_the_moves_that_come_to_their_end(server: Server) -> None:
    await join(server, "b")
    done = await freeze(server, "--yes", "-o", "json")
    assert json.loads(done.out)["moves"] == [
        {"topic": "orders", "partition": 1, "from": "a", "to": "b"}
    ]


async def test_describe_says_since_when_and_by_whom(server: Server) -> None:
    assert "FROZEN" not in (await server.run("group", "describe", "g")).out
    await freeze(server, "--yes")
    head = (await server.run("group", "describe", "g")).out.splitlines()[0]
    assert "FROZEN since 20" in head
    state = (await server.run("group", "describe", "g", "--state")).out
    assert "FROZEN-SINCE" in state


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("group", "freeze", "none", "--yes"), 3, "does not exist"),
        (("group", "resume", "none", "--yes"), 3, "does not exist"),
        (("group", "freeze", "g", "--yes"), 4, "is frozen by"),
        (("group", "freeze", "g", "--dry-run"), 4, "is frozen by"),
        (("group", "freeze", "offsets-only", "--yes"), 4, "is not a consumer group"),
        (("group", "resume", "offsets-only", "--yes"), 4, "is not a consumer group"),
        (("group", "seek", "g", "orders", "--to", "7", "--yes"), 4, "is frozen by"),
        (("whatif", "g", "--protocol", "classic", "--assignor", "range"), 4, "is frozen by"),
    ],
)
async def test_a_change_on_a_frozen_group_is_one_line(
    server: Server, arguments: tuple[str, ...], exit_code: int, message: str
) -> None:
    await commit(server, "offsets-only", "orders", 0)
    await freeze(server, "--yes")
    failed = await server.run(*arguments)
    assert failed.exit_code == exit_code, failed
    assert (message in failed.error, failed.error.strip().count("\n")) == (True, 0), failed


async def test_a_group_that_is_not_frozen_cannot_be_resumed(server: Server) -> None:
    failed = await resume(server, "--yes")
    assert (failed.exit_code, "is not frozen" in failed.error) == (4, True)


async def test_what_if_knows_of_the_freeze(server: Server) -> None:
    await freeze(server, "--yes")
    frozen = json.loads((await server.run("whatif", "g", "--add", "1", "-o", "json")).out)
    assert (frozen["moves"], len(frozen["idle"])) == ([], 1)
    asked = await server.run("whatif", "g", "--add", "1", "--resume", "-o", "json")
    assert len(json.loads(asked.out)["moves"]) == 1


async def test_frozen_groups_are_listed(server: Server) -> None:
    async def list_frozen(*options: str) -> str:
        return (await server.run("group", "list", "--frozen", *options)).out

    await commit(server, "loose", "orders", 0)
    assert json.loads(await list_frozen("-o", "json"))["groups"] == []
    await server.run("group", "freeze", "g", "--yes")
    (found,) = json.loads(await list_frozen("-o", "json"))["groups"]
    assert (found["group_id"], int(found["frozen_since_ms"]) > 0) == ("g", True)
    assert "FROZEN-SINCE" in await list_frozen("-o", "wide")
    assert "FROZEN-SINCE" not in await list_frozen()
    await server.run("group", "resume", "g", "--yes")
    assert json.loads(await list_frozen("-o", "json"))["groups"] == []
