"""`muster quota` against a real server."""

import json
from collections.abc import AsyncIterator

import pytest

from cli.errors import ExitCode
from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.configs.coordinator_settings import CoordinatorSettings
from tests.support.memory import MemoryLogStore
from tests.unit.cli.admin.test_admin_commands import Server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    runtime = Runtime(MemoryLogStore(4), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    grpc = GrpcServer(runtime, AllowAll(), GrpcSettings())
    port = await grpc.start("127.0.0.1", 0)
    yield Server(runtime, f"127.0.0.1:{port}")
    await grpc.stop(0)
    await runtime.stop()


async def test_quotas_are_set_listed_and_deleted(server: Server) -> None:
    done = await server.run("quota", "set", "commit_rate=5", "members_max=10", "--user", "app")
    assert (done.exit_code, done.error) == (0, "in force: commit_rate=5, members_max=10\n")
    more = await server.run(
        "quota", "set", "request_percentage=12.5", "--user", "<default>", "--client-id", "c", "-q"
    )
    assert (more.exit_code, more.error) == (0, "")
    await server.run("quota", "set", "connection_creation_rate=7", "--ip", "10.0.0.1")
    listed = await server.run("quota", "list", "-o", "csv")
    assert listed.out.splitlines() == [
        "USER,CLIENT-ID,IP,QUOTA,VALUE",
        ",,10.0.0.1,connection_creation_rate,7",
        "<default>,c,,request_percentage,12.5",
        "app,,,commit_rate,5",
        "app,,,members_max,10",
    ]
    shown = json.loads((await server.run("quota", "list", "--user", "app", "-o", "json")).out)
    assert shown["entities"] == [
        {
            "entity": {"user": "app"},
            "quotas": [{"key": "commit_rate", "value": 5}, {"key": "members_max", "value": 10}],
        }
    ]
    dry = await server.run("quota", "delete", "commit_rate", "--user", "app", "--dry-run")
    assert "commit_rate" in dry.out
    assert "members_max" not in dry.out
    gone = await server.run("quota", "delete", "commit_rate", "--user", "app", "--yes")
    assert (gone.exit_code, gone.error) == (0, "deleted quotas: 1\n")
    rest = await server.run("quota", "delete", "--user", "app", "--yes")
    assert rest.error == "deleted quotas: 1\n"
    assert not (await server.run("quota", "list", "--user", "app", "-o", "csv")).out.splitlines()[
        1:
    ]


async def test_a_deletion_is_of_exactly_this_entity(server: Server) -> None:
    await server.run("quota", "set", "commit_rate=5", "--user", "a", "--client-id", "c")
    missing = await server.run("quota", "delete", "--user", "a", "--yes")
    assert missing.exit_code == ExitCode.NOT_FOUND
    assert (await server.run("quota", "list", "-o", "csv")).out.count("commit_rate") == 1


async def test_what_is_only_checked_is_not_done(server: Server) -> None:
    dry = await server.run("quota", "set", "commit_rate=5", "--user", "a", "--dry-run")
    assert dry.error == "would be in force: commit_rate=5\n"
    assert "commit_rate" not in (await server.run("quota", "list")).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["set", "commit_rate=5"], "say whose"),
        (["set", "commit_rate", "--user", "a"], "is not QUOTA=NUMBER"),
        (["set", "commit_rate=fast", "--user", "a"], "is not QUOTA=NUMBER"),
        (["set", "nonsense=5", "--user", "a"], "Invalid configuration key nonsense"),
        (["set", "commit_rate=0", "--user", "a"], "greater than 0"),
        (["set", "commit_rate=5", "--user", ""], "--user is empty"),
        (["set", "request_rate=5", "--ip", "host"], "not a valid IP"),
    ],
)
async def test_mistakes_are_said_in_one_line(
    server: Server, arguments: list[str], said: str
) -> None:
    result = await server.run("quota", *arguments)
    assert result.exit_code == ExitCode.USAGE
    assert said in result.error
    assert len(result.error.splitlines()) == 1
