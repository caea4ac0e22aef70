"""`muster user` against a real server, and what it reads as a password."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from scramp import ScramMechanism as Reference

from cli.admin.passwords import PASSWORD_BYTES_MAX, read_password
from cli.errors import CommandError, ExitCode
from coordinator.runtime.authorizer import AclAuthorizer, AllowAll, Authorizer
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.access.scram import ScramMechanism
from model.configs.coordinator_settings import CoordinatorSettings
from muster.v1 import user_pb2, user_pb2_grpc
from tests.groups import CHECKOUT
from tests.support.memory import MemoryLogStore
from tests.unit.cli.admin.test_admin_commands import Server

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
PASSWORD = "pencil"


async def run_server(authorizer: Authorizer) -> AsyncIterator[Server]:
    runtime = Runtime(MemoryLogStore(4), CoordinatorSettings(), authorizer=authorizer)
    await runtime.start()
    await runtime.loaded()
    grpc_server = GrpcServer(runtime, authorizer, GrpcSettings(grpc_page_size_max=2))
    port = await grpc_server.start("127.0.0.1", 0)
    yield Server(runtime, f"127.0.0.1:{port}")
    await grpc_server.stop(0)
    await runtime.stop()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async for each in run_server(AllowAll()):
        yield each


@pytest.fixture
async def closed_server() -> AsyncIterator[Server]:
    async for each in run_server(AclAuthorizer(frozenset())):
        yield each


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return str(path)


def write(password: str, file: str) -> None:
    Path(file).write_text(password)


def holds(server: Server, user: str, mechanism: ScramMechanism, password: str) -> bool:
    """Whether this is the password, by another implementation."""
    found = server.runtime.scram_credentials.find(user, mechanism)
    if found is None:
        return False
    expected = Reference(mechanism.value).make_auth_info(password, found.iterations, found.salt)
    return (found.salt, found.stored_key, found.server_key, found.iterations) == expected


async def test_users_are_created_listed_changed_and_deleted(server: Server, file: str) -> None:
    made = await server.run("user", "create", "alice", "--password-file", file)
    assert (made.exit_code, made.error) == (0, "created: alice (SCRAM-SHA-256, SCRAM-SHA-512)\n")
    assert holds(server, "alice", SHA_256, PASSWORD)
    assert holds(server, "alice", SHA_512, PASSWORD)
    salts = {
        each.salt for each in server.runtime.scram_credentials.find_mechanisms("alice").values()
    }
    assert len(salts) == 2
    options = ("--mechanism", "scram-sha-512", "--iterations", "8192", "-q")
    quiet = await server.run("user", "create", "bob", *options, "--password-file", file)
    assert (quiet.exit_code, quiet.error, quiet.out) == (0, "", "")
    listed = await server.run("user", "list", "-o", "csv")
    assert listed.out.splitlines() == [
        "USER,MECHANISM,ITERATIONS",
        "alice,SCRAM-SHA-256,4096",
        "alice,SCRAM-SHA-512,4096",
        "bob,SCRAM-SHA-512,8192",
    ]
    shown = json.loads((await server.run("user", "list", "-o", "json")).out)
    assert shown["users"][1] == {
        "name": "bob",
        "credentials": [{"mechanism": "SCRAM-SHA-512", "iterations": 8_192}],
    }
    write("another", file)
    changed = await server.run("user", "passwd", "bob", "--password-file", file)
    assert changed.error == "changed: bob (SCRAM-SHA-512)\n"
    assert holds(server, "bob", SHA_512, "another")
    tried = await server.run("user", "delete", "alice", "--dry-run")
    assert "alice" in tried.out
    gone = await server.run("user", "delete", "alice", "--yes")
    assert gone.error == "deleted: alice\n"
    assert list(server.runtime.scram_credentials) == ["bob"]


async def test_a_former_password_is_valid_for_no_mechanism(server: Server, file: str) -> None:
    await server.run("user", "create", "alice", "--password-file", file)
    write("another", file)
    options = ("--mechanism", "SCRAM-SHA-256", "--password-file", file)
    changed = await server.run("user", "passwd", "alice", *options)
    assert changed.error == "changed: alice (SCRAM-SHA-256)\n"
    assert holds(server, "alice", SHA_256, "another")
    assert server.runtime.scram_credentials.find("alice", SHA_512) is None


async def test_one_credential_is_deleted(server: Server, file: str) -> None:
    await server.run("user", "create", "alice", "--password-file", file)
    options = ("--mechanism", "SCRAM-SHA-256", "--yes")
    gone = await server.run("user", "delete", "alice", *options)
    assert gone.error == "deleted: alice for SCRAM-SHA-256\n"
    assert holds(server, "alice", SHA_512, PASSWORD)
    again = await server.run("user", "delete", "alice", *options)
    assert again.exit_code == ExitCode.NOT_FOUND


async def test_all_pages_are_listed(server: Server, file: str) -> None:
    for number in range(5):
        await server.run("user", "create", f"u{number}", "--password-file", file, "-q")
    listed = await server.run("user", "list", "-o", "jsonl")
    assert len(listed.out.splitlines()) == 5


async def test_a_dry_run_changes_nothing(server: Server, file: str) -> None:
    would = await server.run("user", "create", "alice", "--password-file", file, "--dry-run")
    assert would.error.startswith("can be created: alice")
    assert not len(server.runtime.scram_credentials)
    await server.run("user", "create", "alice", "--password-file", file)
    before = server.runtime.scram_credentials.copy()
    for arguments in (("passwd", "alice", "--password-file", file), ("delete", "alice")):
        assert (await server.run("user", *arguments, "--dry-run")).exit_code == 0
    assert server.runtime.scram_credentials.copy() == before


async def test_what_there_is_or_is_not_is_told(server: Server, file: str) -> None:
    await server.run("user", "create", "alice", "--password-file", file)
    again = await server.run("user", "create", "alice", "--password-file", file)
    assert again.exit_code == ExitCode.PRECONDITION
    assert "The user 'alice' exists already" in again.error
    for arguments in (("passwd", "bob", "--password-file", file), ("delete", "bob", "--yes")):
        result = await server.run("user", *arguments)
        assert result.exit_code == ExitCode.NOT_FOUND
        assert "bob" in result.error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "a", "--mechanism", "PLAIN"), "'PLAIN' is none of SCRAM-SHA-256"),
        (("create", "a", "--password-file", "/no/such"), "/no/such cannot be read: No such file"),
        (("create", "a"), "standard input is not a terminal: add --password-file"),
        (("create", "a\u0007"), "the name cannot be used: control characters forbidden"),
        (("delete", "a", "--mechanism", "x", "--yes"), "'x' is none of SCRAM-SHA-256"),
    ],
)
async def test_a_mistake_is_told(server: Server, arguments: tuple[str, ...], said: str) -> None:
    result = await server.run("user", *arguments)
    assert result.exit_code != 0
    assert said in result.error
    assert not len(server.runtime.scram_credentials)


async def test_users_need_rights(closed_server: Server, file: str) -> None:
    for arguments in (
        ("create", "a", "--password-file", file),
        ("passwd", "a", "--password-file", file),
        ("list",),
        ("delete", "a", "--yes"),
    ):
        result = await closed_server.run("user", *arguments)
        assert result.exit_code == ExitCode.FAILED
        assert "CLUSTER_AUTHORIZATION_FAILED" in result.error
    assert not len(closed_server.runtime.scram_credentials)


# ------------------------------------------------------------------------------ the calls


def make_credential(**fields: Any) -> user_pb2.ScramCredential:
    defaults = {
        "mechanism": "SCRAM-SHA-256", "salt": b"salt", "iterations": 4_096,
        "stored_key": b"s" * 32, "server_key": b"t" * 32,
    }  # fmt: skip
    return user_pb2.ScramCredential(**{**defaults, **fields})


@pytest.mark.parametrize(
    ("credentials", "said"),
    [
        ([], "give one credential for each mechanism"),
        ([make_credential()] * 3, "give one credential for each mechanism"),
        ([make_credential()] * 2, "cannot be altered twice"),
        ([make_credential(mechanism="PLAIN")], "'PLAIN' is none of"),
        ([make_credential(stored_key=b"SECRET")], "stored_key must have 32 bytes"),
        ([make_credential(server_key=b"SECRET" * 100)], "server_key must have 32 bytes"),
        ([make_credential(salt=b"")], "salt must not be empty"),
        ([make_credential(salt=b"SECRET" * 1_000)], "longer than 1024 bytes"),
        ([make_credential(iterations=1)], "Too few iterations"),
        ([make_credential(iterations=2**31 - 1)], "Too many iterations"),
    ],
)
async def test_a_credential_that_cannot_be_is_refused_without_a_word_of_it(
    server: Server, credentials: list[user_pb2.ScramCredential], said: str
) -> None:
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub: Any = user_pb2_grpc.UserServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.CreateUser(user_pb2.CreateUserRequest(name="a", credentials=credentials))
    assert said in str(refused.value.details())
    assert "SECRET" not in repr(refused.value)
    assert not len(server.runtime.scram_credentials)


async def test_a_repeated_request_has_one_effect(server: Server) -> None:
    request = user_pb2.CreateUserRequest(
        name="a", credentials=[make_credential()], request_id="7" * 32
    )
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub: Any = user_pb2_grpc.UserServiceStub(channel)
        await stub.CreateUser(request)
        await stub.CreateUser(request)
        other = user_pb2.CreateUserRequest(
            name="b", credentials=[make_credential()], request_id="7" * 32
        )
        with pytest.raises(grpc.aio.AioRpcError, match="was used for another request"):
            await stub.CreateUser(other)
    assert list(server.runtime.scram_credentials) == ["a"]


async def test_a_long_name_is_refused_and_not_repeated(server: Server) -> None:
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub: Any = user_pb2_grpc.UserServiceStub(channel)
        for call, request in (
            (stub.CreateUser, user_pb2.CreateUserRequest(credentials=[make_credential()])),
            (stub.AlterUser, user_pb2.AlterUserRequest(credentials=[make_credential()])),
            (stub.DeleteUser, user_pb2.DeleteUserRequest()),
        ):
            request.name = "n" * 1_025
            with pytest.raises(grpc.aio.AioRpcError, match="longer than 1024 bytes") as refused:
                await call(request)
            assert len(refused.value.details()) < 200


# --------------------------------------------------------------------------- passwords


@pytest.mark.parametrize(
    ("content", "password"),
    [
        (b"pencil", "pencil"),
        (b"pencil\n", "pencil"),
        (b"pencil\r\n", "pencil"),
        (b" pencil \n\n", " pencil \n"),
        ("\u2168 I\u00adX\u00a0".encode(), "IX IX "),
        (b"x" * PASSWORD_BYTES_MAX + b"\r\n", "x" * PASSWORD_BYTES_MAX),
    ],
)
def test_a_password_is_read_and_prepared(tmp_path: Path, content: bytes, password: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    if "\n" in password:
        with pytest.raises(CommandError, match="control characters forbidden"):
            read_password(str(file))
        return
    found = read_password(str(file))
    assert found.reveal() == password
    assert password.strip() not in repr(found)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        ("\u00ad".encode(), "is empty"),
        (b"SECRET\xff", "is not UTF-8"),
        (b"SECRET" * 1_000, "is longer than 1024 bytes"),
        (b"SECRET\x07", "the password cannot be used: control characters forbidden"),
    ],
)
def test_a_password_that_cannot_be_is_not_shown(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    with pytest.raises(CommandError) as refused:
        read_password(str(file))
    assert said in refused.value.message
    assert "SECRET" not in refused.value.message


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [(("pencil", "pencil"), 0, "6"), (("pencil", "pencjl"), 1, "the two passwords differ")],
)
def test_a_terminal_is_asked_twice_without_an_echo(
    typed: tuple[str, str], code: int, said: str
) -> None:
    program = (
        "import sys\n"
        "from cli.admin.passwords import read_password\n"
        "from cli.errors import CommandError\n"
        "try:\n"
        "    print(len(read_password(None).reveal()))\n"
        "except CommandError as error:\n"
        "    print(error.message)\n"
        "    sys.exit(1)\n"
    )
    primary, secondary = pty.openpty()
    try:
        asked = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=secondary,
            stdout=subprocess.PIPE,
            stderr=secondary,
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
            text=True,
        )
        shown = b""
        for line, prompt in zip(typed, (b"Password: ", b"The same again: "), strict=True):
            while prompt not in shown:
                shown += os.read(primary, 1_024)
            os.write(primary, f"{line}\n".encode())
        out, _ = asked.communicate(timeout=60)
        shown += os.read(primary, 1_024)
    finally:
        os.close(primary)
        os.close(secondary)
    assert (asked.returncode, out.strip()) == (code, said)
    assert b"penc" not in shown
