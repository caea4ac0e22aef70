"""`muster acl` against a real server whose ACLs decide."""

import json
from collections.abc import AsyncIterator

import pytest

from cli.admin.acl_commands import parse_resource
from cli.errors import CommandError, ExitCode
from coordinator.runtime.authorizer import AclAuthorizer, AllowAll, Authorizer
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.configs.coordinator_settings import CoordinatorSettings
from tests.support.memory import MemoryLogStore
from tests.unit.cli.admin.test_admin_commands import Server

ANONYMOUS = "User:ANONYMOUS"


async def run_server(authorizer: Authorizer) -> AsyncIterator[Server]:
    runtime = Runtime(MemoryLogStore(4), CoordinatorSettings(), authorizer=authorizer)
    await runtime.start()
    await runtime.loaded()
    grpc = GrpcServer(runtime, authorizer, GrpcSettings())
    port = await grpc.start("127.0.0.1", 0)
    yield Server(runtime, f"127.0.0.1:{port}")
    await grpc.stop(0)
    await runtime.stop()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A server that its administrator uses without a name."""
    async for each in run_server(AclAuthorizer(frozenset({ANONYMOUS}))):
        yield each


@pytest.fixture
async def open_server() -> AsyncIterator[Server]:
    async for each in run_server(AllowAll()):
        yield each


async def test_acls_are_added_listed_checked_and_deleted(server: Server) -> None:
    added = await server.run("acl", "add", "User:app", "read,describe", "group:orders")
    assert added.error == (
        "in force: ALLOW User:app READ group:orders; ALLOW User:app DESCRIBE group:orders\n"
    )
    denied = await server.run("acl", "add", "User:*", "all", "group:team-*", "--deny", "-q")
    assert (denied.exit_code, denied.error) == (0, "")
    listed = await server.run("acl", "list", "-o", "csv")
    assert listed.out.splitlines() == [
        "PERMISSION,PRINCIPAL,HOST,OPERATION,RESOURCE,PATTERN,NAME",
        "ALLOW,User:app,*,READ,GROUP,LITERAL,orders",
        "ALLOW,User:app,*,DESCRIBE,GROUP,LITERAL,orders",
        "DENY,User:*,*,ALL,GROUP,PREFIXED,team-",
    ]
    shown = json.loads((await server.run("acl", "list", "--principal", "User:*", "-o", "json")).out)
    assert [acl["resource_name"] for acl in shown["acls"]] == ["team-"]
    held = await server.run("acl", "list", "--resource", "group:team-a", "-o", "csv")
    assert len(held.out.splitlines()) == 2
    tried = await server.run("acl", "delete", "--resource", "group:team-*", "--dry-run")
    assert "team-" in tried.out
    gone = await server.run("acl", "delete", "--resource", "group:team-*", "--yes")
    assert gone.error == "deleted ACLs: 1\n"
    again = await server.run("acl", "delete", "--resource", "group:team-*", "--yes")
    assert (again.exit_code, again.error) == (ExitCode.NOT_FOUND, "there is no such ACL")


async def test_a_check_names_the_acl_that_decides(server: Server) -> None:
    await server.run("acl", "add", "User:app", "read", "group:team-*")
    await server.run(
        "acl", "add", "User:app", "read", "group:team-x", "--deny", "--host", "10.0.0.9"
    )
    for arguments, expected in (
        (("User:app", "read", "group:team-a"), (0, "allowed: ALLOW User:app READ group:team-*\n")),
        (
            ("User:app", "describe", "group:team-a"),
            (0, "allowed: ALLOW User:app READ group:team-*\n"),
        ),
        (("User:app", "delete", "group:team-a"), (1, "denied: no ACL allows it\n")),
        (
            ("User:app", "read", "group:team-x", "--host", "10.0.0.9"),
            (1, "denied: DENY User:app READ group:team-x from 10.0.0.9\n"),
        ),
        ((ANONYMOUS, "alter", "cluster"), (0, "allowed: super.users\n")),
    ):
        result = await server.run("acl", "check", *arguments)
        assert (result.exit_code, result.out) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "User:a", "fly", "group:g"), "'FLY' is none of ALL, READ"),
        (("add", "app", "read", "group:g"), "'app' is no principal: write it as User:NAME"),
        (("add", "User:a", "read", "grp:g"), "'grp:g' is no resource: write TYPE:NAME"),
        (("add", "User:a", "read", "group"), "'group' has no name: write group:NAME"),
        (("add", "User:a", "alter", "cluster:mine"), "the cluster's only name is kafka-cluster"),
        (("check", "User:a", "all", "group:g"), "ask for one operation"),
        (("delete", "--yes", "--operation", "read,write"), "name one operation"),
        (("delete", "--yes", "--operation", ","), "name one operation"),
        (("delete", "--yes"), "say which: --principal, --operation or --resource"),
    ],
)
async def test_a_mistake_is_told(server: Server, arguments: tuple[str, ...], said: str) -> None:
    result = await server.run("acl", *arguments)
    assert result.exit_code == ExitCode.USAGE
    assert said in result.error


async def test_a_server_without_authorizer_says_so(open_server: Server) -> None:
    for arguments in (
        ("add", "User:a", "read", "group:g"),
        ("list",),
        ("check", "User:a", "read", "group:g"),
    ):
        result = await open_server.run("acl", *arguments)
        assert result.exit_code == ExitCode.PRECONDITION
        assert "authorizer.class.name=StandardAuthorizer" in result.error


def test_a_star_at_the_end_is_a_prefix() -> None:
    assert parse_resource("group:team-*") == ("GROUP", "PREFIXED", "team-")
    assert parse_resource("Topic:*") == ("TOPIC", "LITERAL", "*")
    assert parse_resource("cluster") == ("CLUSTER", "LITERAL", "kafka-cluster")
    with pytest.raises(CommandError):
        parse_resource("nothing:x")
