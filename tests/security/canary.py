"""Secrets that are planted wherever one may come from, and the search for them in what is written.

A place for another secret is one line of ``PLACES``: its name, and how it gets there.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import grpc

from muster.v1 import admin_pb2, admin_pb2_grpc
from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.service.raw_http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    frame,
    header_block,
)
from tests.support.waiting import wait_until
from tests.support.wire.blocking import Client
from tests.support.wire.fields import commit

Outputs = Mapping[str, bytes]
"""What was written, by where."""


@dataclass
class Stage:
    """A server that is about to start: its file of settings, its environment, and its folder."""

    folder: Path
    properties: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    provided: list[str] = field(default_factory=list)
    sends: list[Callable[[MusterServer], None]] = field(default_factory=list)


def _plant_nothing(stage: Stage, secret: str) -> None:
    """For a secret that is planted otherwise."""


class Place(NamedTuple):
    """Where a secret comes from; ``plant`` puts it there."""

    name: str
    plant: Callable[[Stage, str], None] = _plant_nothing

    @property
    def secret(self) -> str:
        """No other text has it."""
        return f"cAnArY-{self.name.translate(_PLAIN)}-7fQ2"


_PLAIN: Final = str.maketrans(dict.fromkeys(" .:{}$/-", "_"))


# ------------------------------------------------------------------------------- how to plant


def in_file(setting: str) -> Callable[[Stage, str], None]:
    """In the file of settings."""

    def plant(stage: Stage, secret: str) -> None:
        stage.properties.append(f"{setting}={secret}")

    return plant


def in_variable(name: str) -> Callable[[Stage, str], None]:
    """In the environment of the server."""

    def plant(stage: Stage, secret: str) -> None:
        stage.environment[name] = secret

    return plant


def by_file_provider(setting: str) -> Callable[[Stage, str], None]:
    """In the file of a config provider."""

    def plant(stage: Stage, secret: str) -> None:
        stage.provided.append(f"{setting}={secret}")
        stage.properties.append(f"{setting}=${{file:{stage.folder}/secrets.properties:{setting}}}")

    return plant


def by_env_provider(setting: str) -> Callable[[Stage, str], None]:
    """In a variable that a config provider reads."""

    def plant(stage: Stage, secret: str) -> None:
        stage.environment["PROVIDED"] = secret
        stage.properties.append(f"{setting}=${{env:PROVIDED}}")

    return plant


def by_directory_provider(setting: str) -> Callable[[Stage, str], None]:
    """In a file of its own."""

    def plant(stage: Stage, secret: str) -> None:
        (stage.folder / "keys").mkdir(exist_ok=True)
        (stage.folder / "keys" / setting).write_text(secret)
        stage.properties.append(f"{setting}=${{directory:{stage.folder}/keys:{setting}}}")

    return plant


def sent(send: Callable[[MusterServer, str], None]) -> Callable[[Stage, str], None]:
    """By a client, once the server listens."""

    def plant(stage: Stage, secret: str) -> None:
        stage.sends.append(lambda server: send(server, secret))

    return plant


# ------------------------------------------------------------------------ clients that are wrong


def send_bytes(server: MusterServer, listener: str, data: bytes) -> None:
    """Send bytes that are no request, and wait until the server hangs up or answers."""
    with socket.create_connection(server.address(listener), 10) as line:
        line.sendall(data)
        line.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError, TimeoutError):
            while line.recv(65_536):
                pass


def send_sasl_token(server: MusterServer, secret: str) -> None:
    """SaslHandshake and SaslAuthenticate, to a listener that has no SASL."""
    token = b"\0alice\0" + secret.encode()
    body = len(token).to_bytes(4, "big") + token
    head = b"\x00\x24\x00\x01\x00\x00\x00\x01\x00\x01c"  # SaslAuthenticate 1, client id c
    for data in (token, head + body):
        send_bytes(server, "kafka", len(data).to_bytes(4, "big") + data)


def send_garbage(server: MusterServer, secret: str) -> None:
    """Frames of each API that do not decode, with the secret in them."""
    body = secret.encode() * 3
    for key in range(76):
        head = key.to_bytes(2, "big") + b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x01c"
        data = head + body
        send_bytes(server, "kafka", len(data).to_bytes(4, "big") + data)


def send_http(server: MusterServer, secret: str) -> None:
    """Paths, headers and bodies of HTTP, to each listener."""
    request = (
        f"GET /metrics?token={secret} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n"
        f"Cookie: session={secret}\r\n\r\n"
    ).encode()
    for listener in ("kafka", "grpc", "http"):
        send_bytes(server, listener, request)
        send_bytes(server, listener, secret.encode() + request)


def send_metadata(server: MusterServer, secret: str) -> None:
    """gRPC metadata, and a request that is refused."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        metadata = (("authorization", f"Bearer {secret}"), ("x-api-key", secret))
        for request in (
            admin_pb2.DeleteGroupRequest(group_id="g"),
            admin_pb2.DeleteGroupRequest(group_id="none"),
        ):
            with suppress(grpc.RpcError):
                stub.DeleteGroup(request, metadata=metadata)


def send_bad_metadata(server: MusterServer, secret: str) -> None:
    """A header that is not UTF-8, as no client of gRPC sends it."""
    headers = header_block(authorization=f"Basic \xff{secret}")
    call = frame(HEADERS, END_HEADERS, 1, headers) + frame(DATA, END_STREAM, 1, bytes(5))
    send_bytes(server, "grpc", PREFACE + frame(SETTINGS, 0, 0) + call)


def send_configs(server: MusterServer, secret: str) -> None:
    """Passwords as configs of brokers, topics and groups, where there are none."""
    names = ("ssl.keystore.password", "sasl.jaas.config", "listener.name.x.ssl.key.password")
    configs = [{"name": name, "config_operation": 0, "value": secret} for name in names]
    with Client(server.address("kafka")) as client:
        for kind, name in ((4, "0"), (4, ""), (2, "orders"), (32, "g"), (8, "0")):
            resource = {"resource_type": kind, "resource_name": name, "configs": configs}
            client.ask(44, 1, resources=[resource])
        wanted = {
            "name": "new",
            "num_partitions": 1,
            "replication_factor": 1,
            "configs": [{"name": names[0], "value": secret}],
        }
        client.ask(19, 5, topics=[wanted])
        client.ask(32, 4, resources=[{"resource_type": 4, "resource_name": "0"}])


def send_command_line(server: MusterServer, secret: str) -> None:
    """Commands with a secret where it may not stand; what they print is an output too."""
    file = server.data_dir.parent / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        'sasl.jaas.config=x required username="alice" '
        f'password="{secret}";\nssl.key.password={secret}\n'
    )
    log = server.data_dir.parent / "commands.log"
    for words in (
        ("load", "--bootstrap-server", server.kafka, "--command-config", str(file)),
        ("load", "--bootstrap-server", server.kafka, "--sasl-password", secret),
        ("serve", f"--ssl.keystore.password={secret}"),
        ("serve", f"ssl.keystore.password={secret}"),
    ):
        with log.open("ab") as out:
            subprocess.run(
                [sys.executable, "-m", "cli", *words, *_LOAD[words[0]]],
                cwd=CHECKOUT,
                stdout=out,
                stderr=out,
                timeout=60,
                check=False,
            )


def create_user(*words: str) -> Callable[[MusterServer, str], None]:
    """``muster user create`` with the password on standard input."""

    def send(server: MusterServer, secret: str) -> None:
        folder = server.data_dir.parent
        with (folder / "commands.log").open("ab") as out:
            subprocess.run(
                [sys.executable, "-m", "cli", "user", "create", *words, "--server", server.grpc],
                cwd=CHECKOUT,
                input=secret.encode(),
                stdout=out,
                stderr=out,
                timeout=60,
                check=True,
            )

    return send


def send_salted_password(server: MusterServer, secret: str) -> None:
    """AlterUserScramCredentials as ``kafka-configs.sh`` sends it: the salted password logs in."""
    upsertion = {
        "name": "carol",
        "mechanism": 1,
        "iterations": 4_096,
        "salt": b"salt of carol",
        "salted_password": secret.encode(),
    }
    with Client(server.address("kafka")) as client:
        answer = client.ask(51, 0, deletions=[], upsertions=[upsertion])
        assert [row.error_code for row in answer.results] == [0]
        client.ask(50, 0, users=None)


_LOAD: Final[dict[str, tuple[str, ...]]] = {
    "load": ("--members", "0", "--workload", "commits", "--duration", "1s", "--timeout", "2s"),
    "serve": (),
}

PLACES: Final = (
    Place("ssl.keystore.password", in_file("ssl.keystore.password")),
    Place("zookeeper.ssl.truststore.password", in_file("zookeeper.ssl.truststore.password")),
    Place("ssl.truststore.password", by_file_provider("ssl.truststore.password")),
    Place("ssl.key.password", by_env_provider("ssl.key.password")),
    Place("ssl.keystore.key", by_directory_provider("ssl.keystore.key")),
    Place("sasl.jaas.config", in_file("sasl.jaas.config")),
    Place("upstream.sasl.jaas.config", in_file("upstream.sasl.jaas.config")),
    Place("upstream.ssl.key.password", by_file_provider("upstream.ssl.key.password")),
    Place("MUSTER_SASL_PASSWORD", in_variable("MUSTER_SASL_PASSWORD")),
    Place("another variable", in_variable("AWS_SECRET_ACCESS_KEY")),
    Place("sasl token", sent(send_sasl_token)),
    Place("garbage", sent(send_garbage)),
    Place("http", sent(send_http)),
    Place("grpc metadata", sent(send_metadata)),
    Place("grpc metadata that is no text", sent(send_bad_metadata)),
    Place("configs", sent(send_configs)),
    Place("command line", sent(send_command_line)),
    Place("password on stdin", sent(create_user("dave", "--password-file", "-"))),
    Place("salted password 0051", sent(send_salted_password)),
)

MAY_HOLD: Final = frozenset[str]()
"""Files of the data folder that have to hold a secret, by their paths in it."""


# ------------------------------------------------------------------------------------ the server


def run_canary(folder: Path, places: Iterable[Place] = PLACES) -> Outputs:
    """Start a server with all secrets, let clients send theirs, and gather what it wrote."""
    stage = Stage(folder)
    for place in places:
        place.plant(stage, place.secret)
    (folder / "secrets.properties").write_text("\n".join(stage.provided) + "\n")
    file = folder / "server.properties"
    lines = ["config.providers=file,env,directory", *stage.properties]
    file.write_text("\n".join(lines) + "\n")
    for each in (file, folder / "secrets.properties"):
        each.chmod(0o600)
    audit_log = folder / "audit.log"
    server = MusterServer(
        folder / "data",
        "--config",
        str(file),
        topics={"orders": 2},
        settings={
            "log.level": "debug",
            "audit.log": audit_log,
            "authorizer.class.name": "StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
        environment=stage.environment,
    )
    outputs: dict[str, bytes] = {}
    with server:
        with Client(server.address("kafka")) as client:
            client.ask(8, 8, **commit("g", "orders", {0: 5}))
        for send in stage.sends:
            send(server)
        outputs |= _read_http(server)
        outputs["command line"] = Path(f"/proc/{server.pid}/cmdline").read_bytes()
        outputs |= _show_config(file, stage)
        made = _run("log", "backup", str(folder / "backup"), "--server", server.grpc)
        assert (folder / "backup" / "backup.json").exists(), made
        wait_until(lambda: b"CreateBackup" in audit_log.read_bytes())
        outputs |= read_folder(folder / "data", "data", MAY_HOLD)
        server.terminate()
    outputs["log"] = server.log.read_bytes()
    outputs["commands"] = (folder / "commands.log").read_bytes()
    outputs["audit log"] = audit_log.read_bytes()
    outputs |= read_folder(folder / "backup", "backup")
    outputs |= read_folder(folder / "data", "data at the end", MAY_HOLD)
    return outputs


def _read_http(server: MusterServer) -> Outputs:
    found = {}
    for path in ("/livez", "/readyz", "/metrics", "/version"):
        door = http.client.HTTPConnection(*server.address("http"), timeout=30)
        door.request("GET", path)
        found[path] = door.getresponse().read()
        door.close()
    return found


def _show_config(file: Path, stage: Stage) -> Outputs:
    words = ("config", "show", "--origin", "--config", str(file), "-o")
    return {
        f"config show {form}": _run(*words, form, environment=stage.environment)
        for form in ("json", "table")
    }


def _run(*words: str, environment: Mapping[str, str] | None = None) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words],
        cwd=CHECKOUT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=90,
        check=True,
    )
    return done.stdout


def read_folder(folder: Path, name: str, without: frozenset[str] = frozenset()) -> Outputs:
    """The files of a folder, by ``name`` and their paths in it."""
    found = {}
    for path in folder.rglob("*"):
        relative = str(path.relative_to(folder))
        if path.is_file() and relative not in without:
            with suppress(FileNotFoundError):  # A checkpoint may have removed it.
                found[f"{name}/{relative}"] = path.read_bytes()
    return found


# ------------------------------------------------------------------------------------ the search


def find_leaks(places: Iterable[Place], outputs: Outputs) -> list[str]:
    """Where which secret shows, in any form that it is usually written in."""
    return [
        f"{place.name} in {where}"
        for place in places
        for where, written in outputs.items()
        if any(form in written for form in compute_forms(place.secret))
    ]


def compute_forms(secret: str) -> Iterator[bytes]:
    """The secret as text, in base64 at each alignment, in hex, quoted, and in UTF-16."""
    raw = secret.encode()
    yield raw
    yield raw.hex().encode()
    yield quote(secret, safe="").encode()
    yield secret.encode("utf-16-le")
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        # Without the characters that depend on what stands before and after.
        yield encoded[(0, 2, 3)[shift] : len(encoded) // 4 * 4 - 4]
