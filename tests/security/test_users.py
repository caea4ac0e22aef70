"""Users with SCRAM credentials on a real server: clients and tools, restarts, kills, backups."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from cli.admin_client import connect
from cli.errors import ExitCode
from storage import side_pb2
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import open_store_reader
from tests.groups import CHECKOUT
from tests.kafka.tools import run_tool
from tests.server import MusterServer, ServerNotStarted

PASSWORD: Final = "correct-horse-battery-staple"
CONFIGS: Final = "kafka.admin.ConfigCommand"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", settings={"offsets.topic.num.partitions": 4}) as server:
        yield server


def muster(*arguments: str, password: str = "") -> subprocess.CompletedProcess[str]:
    """A command of its own, which reads ``password`` from its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        cwd=CHECKOUT,
        env={"PYTHONPATH": f"{CHECKOUT}:{CHECKOUT}/sdk", "PATH": ""},
        input=password,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def create(server: MusterServer, *names: str) -> None:
    for name in names:
        options = ("--password-file", "-", "--server", server.grpc)
        made = muster("user", "create", name, *options, password=PASSWORD)
        assert made.returncode == 0, made.stderr


def list_users(server: MusterServer) -> dict[str, dict[str, int]]:
    with connect(server.grpc, 30) as client:
        return {
            user.name: {each.mechanism: each.iterations for each in user.credentials}
            for user in client.list_users()
        }


BOTH: Final = {"SCRAM-SHA-256": 4_096, "SCRAM-SHA-512": 4_096}


def test_users_survive_a_stop_and_a_kill_right_after_the_answer(server: MusterServer) -> None:
    create(server, "alice")
    assert server.terminate() == 0
    server.start()
    create(server, "bob")
    server.kill()
    server.start()
    assert list_users(server) == {"alice": BOTH, "bob": BOTH}
    with connect(server.grpc, 30) as client:
        client.delete_user("alice", "SCRAM-SHA-256", validate_only=False)
        client.delete_user("bob", "", validate_only=False)
    server.kill()
    server.start()
    assert list_users(server) == {"alice": {"SCRAM-SHA-512": 4_096}}
    assert PASSWORD not in server.output()


def test_a_store_with_credentials_of_a_newer_version_is_refused(server: MusterServer) -> None:
    server.terminate()
    store = open_store(server.data_dir / "store", partitions=4)
    store.write([], [(b"\x0c\x01alice", side_pb2.ScramCredential(version=2).SerializeToString())])
    store.sync()
    store.close()
    before = server.output()
    with pytest.raises(ServerNotStarted) as refused:
        server.start()
    assert refused.value.exit_code == ExitCode.PRECONDITION
    (line,) = server.output().removeprefix(before).splitlines()[-1:]
    assert line == (
        "muster: the store has SCRAM credentials of version 2, this version reads up to 1: "
        "use a newer version"
    )
    assert "Traceback" not in server.output()


def test_a_backup_of_a_running_server_has_credentials_if_that_is_asked_for(
    server: MusterServer, tmp_path: Path
) -> None:
    create(server, "alice", "bob")
    told = {}
    for name, options in (("without", ()), ("with", ("--with-credentials",))):
        folder = str(tmp_path / name)
        made = muster("log", "backup", folder, "--server", server.grpc, *options)
        assert made.returncode == 0, made.stderr
        told[name] = made.stderr
    assert told == {
        "without": "not backed up: the credentials of 2 users (--with-credentials)\n",
        "with": "",
    }
    assert list_users(server) == {"alice": BOTH, "bob": BOTH}
    for name, said, users in (
        ("without", "not restored, .* 2 users; create them again .*\n", ()),
        ("with", "", ("alice", "bob")),
    ):
        data = tmp_path / f"restored-{name}"
        restored = muster("log", "restore", str(tmp_path / name), "--data-dir", str(data))
        assert restored.returncode == 0
        assert re.fullmatch(said, restored.stderr)
        assert read_users(data) == set(users)
        if not users:
            with MusterServer(data) as again:
                create(again, "carol")
                assert list_users(again) == {"carol": BOTH}


def read_users(data: Path) -> set[str]:
    """The users in the store of a server that does not run."""
    reader = open_store_reader(data / "store")
    try:
        return {key[2:].decode() for key, _ in reader.side() if key[0] == 12}
    finally:
        reader.close()


def test_the_admin_client_of_librdkafka(server: MusterServer) -> None:
    client = AdminClient({"bootstrap.servers": server.kafka})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8_192)
    upsertions = [
        UserScramCredentialUpsertion("alice", info, PASSWORD.encode(), b"salt" * 4),
        UserScramCredentialUpsertion("bob", info, PASSWORD.encode()),
    ]
    for future in client.alter_user_scram_credentials(upsertions).values():
        assert future.result(30) is None
    described = client.describe_user_scram_credentials(["alice", "bob"])
    for user, future in described.items():
        found: Any = future.result(30)
        assert (
            found.user,
            [(each.mechanism, each.iterations) for each in found.scram_credential_infos],
        ) == (
            user,
            [(ScramMechanism.SCRAM_SHA_256, 8_192)],
        )
    deletions = [
        UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256),
        UserScramCredentialDeletion("nobody", ScramMechanism.SCRAM_SHA_256),
    ]
    gone = client.alter_user_scram_credentials(deletions)
    assert gone["alice"].result(30) is None
    with pytest.raises(KafkaException) as refused:
        gone["nobody"].result(30)
    assert refused.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND
    everybody: Any = client.describe_user_scram_credentials().result(30)
    assert list(everybody) == ["bob"]


def configs(server: MusterServer, *arguments: str) -> str:
    """What `kafka-configs.sh` says of a user."""
    where = ("--bootstrap-server", server.kafka, "--entity-type", "users")
    done = run_tool(CONFIGS, [*where, *arguments])
    return f"{done.stdout}{done.stderr}"


@pytest.mark.java
def test_kafka_configs_sets_and_deletes_credentials(server: MusterServer) -> None:
    added = f"SCRAM-SHA-256=[iterations=8192,password={PASSWORD}]"
    alice = ("--entity-name", "alice")
    said = configs(server, "--alter", "--add-config", added, *alice)
    assert "Completed updating config for user alice." in said
    assert list_users(server) == {"alice": {"SCRAM-SHA-256": 8_192}}
    said = configs(server, "--alter", "--delete-config", "SCRAM-SHA-256", *alice)
    assert "Completed updating config for user alice." in said
    assert list_users(server) == {}
    said = configs(server, "--alter", "--delete-config", "SCRAM-SHA-256", *alice)
    assert "Attempt to delete a user credential that does not exist" in said
    assert PASSWORD not in server.output()


@pytest.mark.java
def test_kafka_configs_describes_users(server: MusterServer) -> None:
    create(server, "alice")
    said = configs(server, "--describe", "--entity-name", "alice")
    assert (
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096"
        in (said.replace("SCRAM-SHA-512=iterations=4096, ", ""))
    )
