"""Secrets planted in a server with TLS and SASL, and in the files of clients that log in."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.groups import CHECKOUT
from tests.security.canary import Outputs, Place, read_folder
from tests.security.grpc_doors import issue_token
from tests.server import MusterServer
from tests.support.certificates import Authority
from tests.support.security.tokens import ISSUER, jwk, jwks, rsa_key

KEY_PASSWORD: Final = Place("password of a real key")
JAAS_USER: Final = Place("user of sasl.jaas.config")
WRONG: Final = Place("wrong password")
TOKEN: Final = Place("claim of a token")
BAD_TOKEN: Final = Place("claim of a bad token")
USER: Final = Place("password of a SCRAM user")
PLACES: Final = (KEY_PASSWORD, JAAS_USER, WRONG, TOKEN, BAD_TOKEN, USER)

_SDK: Final = """
import asyncio, logging, sys
import muster
logging.basicConfig(level=logging.DEBUG)
target, ca, user, password = sys.argv[1:]
async def main(password):
    credentials = muster.Basic(user, password)
    print(credentials)
    try:
        async with muster.Member(
            target, "g", topics=["orders"], tls=muster.Tls(ca=ca), credentials=credentials
        ) as member:
            print(member)
    except Exception as error:
        print(repr(error), error)
password = open(password).read()
asyncio.run(main(password))
asyncio.run(main(password + "x"))
"""


def run_secured_canary(folder: Path) -> Outputs:
    """Start the server, let clients log in or fail to, and gather what they all wrote."""
    authority = Authority(folder)
    server = _make_server(folder, authority)
    with server:
        _log_in_on_the_wire(server, authority)
        commands = _run_commands(server, folder, authority)
        data = read_folder(folder / "data", "data")
        server.terminate()
    return {
        "log": server.log.read_bytes(),
        "audit log": (folder / "audit.log").read_bytes(),
        "commands": commands,
        **data,
        **read_folder(folder / "data", "data at the end"),
    }


def _make_server(folder: Path, authority: Authority) -> MusterServer:
    issued = authority.issue("server")
    key = load_pem_private_key(issued.key.read_bytes(), None)
    hidden = BestAvailableEncryption(KEY_PASSWORD.secret.encode())
    keystore = folder / "server.pem"
    keystore.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden) + issued.chain.read_bytes()
    )
    keys = folder / "keys.json"
    keys.write_bytes(jwks(jwk(rsa_key())))
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    file = folder / "server.properties"
    file.write_text(
        f"ssl.keystore.location={keystore}\n"
        f"ssl.key.password={KEY_PASSWORD.secret}\n"
        "sasl.enabled.mechanisms=PLAIN,OAUTHBEARER\n"
        f"listener.name.sasl_ssl.plain.sasl.jaas.config={plain} "
        f'user_alice="{JAAS_USER.secret}";\n'
        "listener.name.grpc.sasl.enabled.mechanisms=SCRAM-SHA-256,OAUTHBEARER\n"
        f"sasl.oauthbearer.jwks.endpoint.url={keys.as_uri()}\n"
        f"sasl.oauthbearer.expected.issuer={ISSUER}\n"
        "authorizer.class.name=StandardAuthorizer\n"
        "super.users=User:admin\n"
        f"audit.log={folder}/audit.log\n"
        "log.level=debug\n"
    )
    file.chmod(0o600)
    listeners = ("--listeners=SASL_SSL://127.0.0.1:0", "--listen.grpc=SASL_SSL://127.0.0.1:0")
    return MusterServer(folder / "data", f"--config={file}", *listeners, topics={"orders": 2})


def _log_in_on_the_wire(server: MusterServer, authority: Authority) -> None:
    """By PLAIN and by a token, each right and wrong."""
    client = {
        "bootstrap.servers": server.kafka,
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(authority.file),
        "log_level": 0,
    }
    plain = client | {"sasl.mechanism": "PLAIN", "sasl.username": "alice"}
    AdminClient(plain | {"sasl.password": JAAS_USER.secret}).list_topics(timeout=30)
    AdminClient(client | _token_of(issue_token("admin", jti=TOKEN.secret))).list_topics(timeout=30)
    bad = issue_token("admin", jti=BAD_TOKEN.secret, iss="https://elsewhere.example")
    for wrong in (plain | {"sasl.password": WRONG.secret}, client | _token_of(bad)):
        failing = AdminClient(wrong)
        try:
            failing.list_topics(timeout=0.5)
        except KafkaException:
            continue
        raise AssertionError("a wrong secret was taken")


def _token_of(token: str) -> dict[str, object]:
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (token, time.time() + 600),
    }


def _run_commands(server: MusterServer, folder: Path, authority: Authority) -> bytes:
    """What the command and the SDK print, with the secrets in their files."""
    token, password = folder / "token", folder / "password"
    token.write_text(issue_token("admin", jti=TOKEN.secret))
    password.write_text(USER.secret)
    trust = (
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={authority.file}\n"
    )
    by_token, by_password, wrong = (folder / f"{n}.properties" for n in ("token", "user", "wrong"))
    by_token.write_text(
        f"{trust}sasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url={token.as_uri()}\n"
    )
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    for file, secret in ((by_password, USER.secret), (wrong, WRONG.secret)):
        file.write_text(
            f"{trust}sasl.mechanism=SCRAM-SHA-256\n"
            f'sasl.jaas.config={scram} username="bob" password="{secret}";\n'
        )
    cli = [sys.executable, "-m", "cli"]
    at = ["--server", server.grpc, "--command-config"]
    return b"".join(
        _run([*command, *map(str, rest)])
        for command, rest in (
            (cli, ("user", "create", "bob", "--password-file", password, *at, by_token)),
            (cli, ("acl", "list", *at, by_password)),
            (cli, ("acl", "list", *at, wrong)),
            ([sys.executable, "-c", _SDK], (server.grpc, authority.file, "bob", password)),
        )
    )


def _run(command: list[str]) -> bytes:
    done = subprocess.run(
        command,
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    return done.stdout
