"""What a server under attack is given for TLS and SASL, in Kafka's words, and its valid client."""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.interop.security import PLAIN, SCRAM_256, Security
from tests.support.certificates import Authority
from tests.support.wire.blocking import Client

PLAINTEXT = "PLAINTEXT"
_ALTER_USERS, _SHA_256, _ITERATIONS = 51, 1, 4_096
USER, _ATTACKER = "bystander", "attacker"
_PASSWORDS = {USER: "a password that nobody guesses", _ATTACKER: "another"}
NEWCOMERS: Final = {f"newcomer-{number}": f"password {number}" for number in range(10)}
"""Users of SCRAM who have not logged in yet, and their passwords."""
SCRAM_USERS: Final = {**_PASSWORDS, **NEWCOMERS}

_USERS = " ".join(f'user_{user}="{password}"' for user, password in _PASSWORDS.items())
_LOGIN = f"org.apache.kafka.common.security.plain.PlainLoginModule required {_USERS};"
_LOGIN_VARIABLE = "MUSTER_LISTENER_NAME_SASL_SSL_PLAIN_SASL_JAAS_CONFIG"
"""Passwords are not taken on the command line."""


@dataclass(frozen=True, slots=True)
class Secured:
    """Settings of the server; ``None`` for clients of a listener without security.

    ``attacker`` has a password too: it belongs, and means harm. ``doors`` and ``door_attacker`` are
    the same two over gRPC, whose HTTP has TLS too; their users are to be made (``make_users``).
    """

    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    security: Security | None = None
    attacker: Security | None = None
    doors: Security | None = None
    door_attacker: Security | None = None


def secure(protocol: str, folder: Path) -> Secured:
    """For a Kafka listener with this protocol alone; what it needs is written to ``folder``."""
    if protocol == PLAINTEXT:
        return Secured()
    raise_file_limit()
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority(folder)
    settings: dict[str, object] = {
        "listen.kafka": f"{protocol}://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.issue("server").both,
    }
    security = Security(protocol=protocol, ca=str(authority.file))
    if protocol == "SASL_SSL":
        settings["sasl.enabled.mechanisms"] = f"{PLAIN},{SCRAM_256}"
        users = (
            replace(security, mechanism=PLAIN, user=user, password=password)
            for user, password in _PASSWORDS.items()
        )
        return Secured(settings, {_LOGIN_VARIABLE: _LOGIN}, *users)
    return Secured(settings, {}, security, security)


def secure_doors(folder: Path) -> Secured:
    """For gRPC whose clients show a password over TLS, and HTTP with TLS; Kafka's wire is plain."""
    raise_file_limit()
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority(folder)
    settings = {
        "listen.grpc": "SASL_SSL://127.0.0.1:0",
        "listen.http": "SSL://127.0.0.1:0",
        "ssl.keystore.location": authority.issue("server").both,
        "listener.name.grpc.sasl.enabled.mechanisms": SCRAM_256,
    }
    security = Security(protocol="SASL_SSL", ca=str(authority.file), mechanism=SCRAM_256)
    users = (
        replace(security, user=user, password=password) for user, password in _PASSWORDS.items()
    )
    return Secured(settings, {}, None, None, *users)


def make_users(client: Client, users: Mapping[str, str]) -> None:
    """Users of SCRAM-SHA-256 with these passwords."""
    salt = b"salt of a test"
    upsertions = [
        {
            "name": user,
            "mechanism": _SHA_256,
            "iterations": _ITERATIONS,
            "salt": salt,
            "salted_password": hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS),
        }
        for user, password in users.items()
    ]
    answer = client.ask(_ALTER_USERS, 0, deletions=(), upsertions=upsertions)
    codes = [result.error_code for result in answer.results]
    if any(codes):
        raise AssertionError(f"users are answered {codes}")


def raise_file_limit() -> None:
    """As many files for this process, and for the server that it starts, as it may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
