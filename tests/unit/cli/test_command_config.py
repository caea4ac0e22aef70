"""`muster` commands with TLS and credentials, and what they say when these are wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from typer.testing import CliRunner

from cli.errors import CommandError, ExitCode
from cli.main import app
from model.access.acls import Operation, ResourceType
from tests.support.authorizers import Rights
from tests.support.certificates import Authority
from tests.support.service.logins import Logins
from tests.support.service.server_tls import make_server_tls
from tests.support.service.stand import Stand, running_stand

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def jaas(user: str, password: str) -> str:
    return f'{SCRAM} required username="{user}" password="{password}";'


def write(folder: Path, properties: Mapping[str, object]) -> Path:
    path = folder / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return path


def trust(path: Path) -> dict[str, object]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": path}


async def run(stand: Stand, *arguments: str) -> tuple[int, str]:
    """The exit code and what the command said."""

    def invoke() -> tuple[int, str]:
        result = CliRunner().invoke(app, [*arguments, "--server", stand.target])
        if isinstance(result.exception, CommandError):
            assert "\n" not in result.exception.message
            return result.exception.exit_code, result.exception.message
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout

    return await asyncio.to_thread(invoke)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def test_sasl_ssl(authority: Authority, tmp_path: Path) -> None:
    ca = trust(authority.file)
    right = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": jaas("alice", "secret"),
        **ca,
    }
    token = tmp_path / "token"
    token.write_text("carol.never\n")
    bearer = right | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
    }
    logins = Logins()
    made = logins.make()
    tls = make_server_tls(authority)
    async with running_stand(tls=tls, authenticate=made.authenticate) as stand:
        for properties in (right, bearer):
            config = str(write(tmp_path, properties))
            for command in (("topic", "list"), ("group", "list"), ("acl", "list")):
                code, said = await run(stand, *command, "--command-config", config)
                assert code == 0 or "No Authorizer is configured" in said, said
            backup = ("log", "backup", str(tmp_path / "b"), "--command-config", config)
            assert "no store on disk" in (await run(stand, *backup))[1]
        wrong = right | {"sasl.jaas.config": jaas("alice", "planted")}
        code, said = await run(
            stand, "topic", "list", "--command-config", str(write(tmp_path, wrong))
        )
        assert code == ExitCode.FAILED
        assert "does not accept the password of user 'alice'" in said
        assert "planted" not in said
        no_password = {"security.protocol": "SSL", **ca}
        code, said = await run(
            stand, "topic", "list", "--command-config", str(write(tmp_path, no_password))
        )
        assert "wants credentials: set security.protocol=SASL_SSL" in said
        other = right | trust(Authority(tmp_path, "other").file)
        code, said = await run(
            stand, "topic", "list", "--command-config", str(write(tmp_path, other))
        )
        assert code == ExitCode.UNREACHABLE
        assert "its certificate is not of a CA in ssl.truststore.location" in said
        code, said = await run(stand, "topic", "list")
        assert code == ExitCode.UNREACHABLE
        assert "cannot reach" in said
        assert "It has ended, or wants TLS: set security.protocol" in said
    logins.stop()


async def test_the_variable_names_the_file(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write(tmp_path, {"security.protocol": "SSL", **trust(authority.file)})
    monkeypatch.setenv("MUSTER_COMMAND_CONFIG", str(config))
    tls = make_server_tls(authority)
    async with running_stand(tls=tls) as stand:
        assert await run(stand, "topic", "list", "-o", "csv") == (
            0,
            (await run(stand, "topic", "list", "-o", "csv"))[1],
        )


async def test_mutual_tls(authority: Authority, tmp_path: Path) -> None:
    ca = {"security.protocol": "SSL", **trust(authority.file)}
    client = authority.issue("alice").both
    bob = authority.issue("bob")
    locked = tmp_path / "locked.pem"
    password = BestAvailableEncryption(b"hidden")
    locked.write_bytes(
        load_pem_private_key(bob.key.read_bytes(), None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, password
        )
        + bob.chain.read_bytes()
    )
    keystore = {"ssl.keystore.type": "PEM", "ssl.keystore.location": client}
    tls = make_server_tls(authority, requires_client=True)
    async with running_stand(tls=tls) as stand:
        for properties in (
            ca | keystore,
            ca | keystore | {"ssl.keystore.location": locked, "ssl.key.password": "hidden"},
        ):
            config = str(write(tmp_path, properties))
            assert (await run(stand, "topic", "list", "--command-config", config))[0] == 0
        config = str(write(tmp_path, ca))
        code, said = await run(stand, "topic", "list", "--command-config", config)
        assert code == ExitCode.UNREACHABLE
        assert "wants a client's certificate" in said


async def test_a_password_for_a_key_that_has_none_is_left_out(
    authority: Authority, tmp_path: Path
) -> None:
    keystore = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.issue("alice").both,
        "ssl.key.password": "planted",
    }
    config = write(tmp_path, {"security.protocol": "SSL", **trust(authority.file), **keystore})
    async with running_stand(tls=make_server_tls(authority, requires_client=True)) as stand:
        assert (await run(stand, "topic", "list", "--command-config", str(config)))[0] == 0


@pytest.mark.parametrize("content", ["", "\n", "planted.two\nlines", "planted\1", "planted é"])
async def test_a_file_without_a_token_is_told_and_not_shown(content: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(content)
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
    }
    async with running_stand() as stand:
        config = str(write(tmp_path, properties))
        code, said = await run(stand, "topic", "list", "--command-config", config)
        assert (code, said) == (ExitCode.USAGE, f"{token} has no token")


async def test_a_user_that_grpc_cannot_name_is_told(tmp_path: Path) -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": jaas("al:ice", "planted"),
    }
    async with running_stand() as stand:
        config = str(write(tmp_path, properties))
        code, said = await run(stand, "topic", "list", "--command-config", config)
        assert code == ExitCode.USAGE
        assert said == "the user 'al:ice' has a colon: over gRPC only others can log in"


async def test_tls_where_there_is_none(authority: Authority, tmp_path: Path) -> None:
    config = write(tmp_path, {"security.protocol": "SSL", **trust(authority.file)})
    async with running_stand() as stand:
        code, said = await run(stand, "topic", "list", "--command-config", str(config))
        assert code == ExitCode.UNREACHABLE
        assert "it speaks no TLS there: set security.protocol to PLAINTEXT" in said


async def test_a_right_that_is_missing_says_who_can_give_it() -> None:
    denied = (Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster")
    async with running_stand(
        authorizer=Rights(denied, (Operation.CREATE, ResourceType.TOPIC, "new"))
    ) as stand:
        code, said = await run(stand, "topic", "create", "new=1")
        assert code == ExitCode.FAILED
        assert "User:ANONYMOUS" in said
        assert "`muster acl add`" in said


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            "OAUTHBEARER needs a token: write it to a file",
        ),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""},
            "gRPC always checks the name",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.key": "KEY"}, "ssl.keystore.key is not read"),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "file:///nowhere/token",
            },
            "cannot read /nowhere/token",
        ),
    ],
)
async def test_what_cannot_be_used_is_told(
    properties: Mapping[str, object], says: str, tmp_path: Path
) -> None:
    async with running_stand() as stand:
        config = str(write(tmp_path, properties))
        code, said = await run(stand, "topic", "list", "--command-config", config)
        assert code != 0
        assert says in said


async def test_credentials_do_not_leave_the_machine_in_the_clear(tmp_path: Path) -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas("alice", "planted"),
    }
    config = str(write(tmp_path, properties))
    found = await asyncio.to_thread(
        CliRunner().invoke,
        app,
        ["topic", "list", "--server", "192.0.2.1:1", "--command-config", config],
    )
    assert isinstance(found.exception, CommandError)
    assert "in the clear to 192.0.2.1:1: use SASL_SSL" in found.exception.message
