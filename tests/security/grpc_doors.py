"""A real server whose gRPC clients authenticate, and what its clients need."""

from __future__ import annotations

import asyncio
import base64
import time
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
from typer.testing import CliRunner

import muster
from cli.errors import CommandError
from cli.main import app
from tests.server import MusterServer
from tests.support.certificates import Authority, Issued
from tests.support.security.tokens import ISSUER, jwk, jwks, rsa_key, sign

ALICE = muster.Basic("alice", "secret of alice")
BOB = muster.Basic("bob", "secret of bob")
MAY = (
    ("User:alice", "read", "group:g*"),
    ("User:alice", "read", "topic:orders"),
    ("User:bob", "read", "group:g*"),
    ("Group:readers", "read", "group:g*"),
    ("Group:readers", "read", "topic:orders"),
)
"""What the principals of tests may do; bob may read no topic."""


def issue_token(sub: str, lifetime_s: float = 600, **claims: object) -> str:
    """A token that the server takes, unless the claims say otherwise."""
    now = time.time()
    return sign(
        sub=sub, **{"aud": None, "iat": now, "exp": now + lifetime_s, "scope": None} | claims
    )


@dataclass
class Doors:
    """A server with TLS and credentials on gRPC; ``folder`` has what its clients read."""

    server: MusterServer
    authority: Authority
    issued: Issued
    folder: Path

    @property
    def target(self) -> str:
        return self.server.grpc

    @property
    def tls(self) -> muster.Tls:
        return muster.Tls(ca=self.authority.file)

    def member(
        self, credentials: muster.Basic | muster.Bearer | None, group_id: str, **rest: object
    ) -> muster.Member:
        """A member that reads `orders`."""
        chosen = {"topics": ["orders"], "tls": self.tls, "credentials": credentials} | rest
        return muster.Member(self.target, group_id, **chosen)  # type: ignore[arg-type]

    def channel(self, ca: Path | None = None) -> grpc.aio.Channel:
        """A connection of its own."""
        trusted = grpc.ssl_channel_credentials((ca or self.authority.file).read_bytes())
        options = (("grpc.use_local_subchannel_pool", 1),)
        return grpc.aio.secure_channel(self.target, trusted, options=options)

    def write_config(self, **properties: object) -> Path:
        """The properties of a Kafka client."""
        found = {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.file,
        } | {name.replace("_", "."): value for name, value in properties.items()}
        path = self.folder / "client.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in found.items()))
        return path

    def run(self, config: Path, *arguments: str) -> str:
        """What a command prints. Raises ``CommandError``."""
        extra = ("--server", self.target, "--command-config", str(config))
        result = CliRunner().invoke(app, [*arguments, *extra])
        if isinstance(result.exception, CommandError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    def write_token_config(self, sub: str) -> Path:
        """The properties of a client with a token."""
        token = self.folder / "token"
        token.write_text(issue_token(sub))
        return self.write_config(
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=token.as_uri(),
        )

    def write_password_config(self, user: muster.Basic) -> Path:
        """The properties of a client with a password."""
        login = f'required username="{user.user}" password="{user.password}";'
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return self.write_config(
            sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=f"{module} {login}"
        )

    def set_up(self) -> None:
        """Create users and rights, as the administrator whom a token shows."""
        config = self.write_token_config("admin")
        password = self.folder / "password"
        for user in (ALICE, BOB):
            password.write_text(user.password)
            self.run(config, "user", "create", user.user, "--password-file", str(password))
        for each in MAY:
            self.run(config, "acl", "add", *each)


def make_doors(folder: Path) -> Doors:
    """The server, which is to be started and set up."""
    authority = Authority(folder)
    issued = authority.issue("server")
    keys = folder / "keys.json"
    keys.write_bytes(jwks(jwk(rsa_key())))
    server = MusterServer(
        folder / "data",
        "--listen.grpc=SASL_SSL://127.0.0.1:0",
        topics={"orders": 4},
        settings={
            "listener.name.grpc.ssl.keystore.location": issued.both,
            "listener.name.grpc.sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "authorizer.class.name": "StandardAuthorizer",
            "super.users": "User:admin",
        },
    )
    return Doors(server, authority, issued, folder)


def basic(user: str, password: str) -> tuple[tuple[str, str], ...]:
    """The metadata of a call with a password."""
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return (("authorization", f"Basic {pair}"),)


async def run_in_thread(doors: Doors, config: Path, *arguments: str) -> str:
    """``Doors.run`` beside a running event loop."""
    return await asyncio.to_thread(doors.run, config, *arguments)
