"""A server on which nothing is anybody's who did not show who he is: Muster, or a real Kafka."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.interop.confluent_client import WITHIN_S, Address
from tests.interop.trust import (
    LISTENERS,
    MECHANISMS,
    PRINCIPAL_RULES,
    SASL_SSL,
    SSL,
    SUPER_USERS,
    Trust,
    password_of,
)
from tests.kafka.broker import HOST, KafkaBroker, Setting
from tests.server import MusterServer
from tests.support.tokens import AUDIENCE, ISSUER

BY_KAFKA: Final = os.environ.get("SECURED_BY") == "kafka"
_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_MODULES: Final = "org.apache.kafka.common.security"
_SCRAM: Final = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
_ITERATIONS: Final = 4_096
_OF_GRPC: Final = {
    "PLAINTEXT": {},
    SSL: {"listener.name.grpc.ssl.client.auth": "required"},
    SASL_SSL: {
        "listener.name.grpc.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
    },
}
"""PLAIN's users are those of the Kafka wire alone."""


@dataclass(frozen=True, slots=True)
class SecuredServer:
    """A running server; ``plain`` is the address of its administrators."""

    trust: Trust
    plain: str
    addresses: Mapping[str, str]
    muster: MusterServer | None = None
    """The process, where it is no Kafka."""

    def at(self, listener: str) -> Address:
        """One of ``LISTENERS``."""
        return Address(self.addresses[listener])

    @property
    def admin(self) -> Address:
        return Address(self.plain)

    def count_records_written(self) -> int:
        """All records of the log of groups and offsets since the start; of Muster alone."""
        assert self.muster is not None
        door = http.client.HTTPConnection(*self.muster.address("http"), timeout=WITHIN_S)
        try:
            door.request("GET", "/metrics")
            lines = door.getresponse().read().decode().splitlines()
        finally:
            door.close()
        name = "muster_log_records_written_total "
        (found,) = (line.removeprefix(name) for line in lines if line.startswith(name))
        return int(float(found))

    @property
    def grpc(self) -> Address:
        """Of Muster alone."""
        assert self.muster is not None
        return Address(self.muster.grpc)


@contextmanager
def run_secured(
    folder: Path,
    trust: Trust,
    users: Sequence[str],
    settings: Mapping[str, Setting] | None = None,
    *,
    kafkas: Mapping[str, Setting] | None = None,
    musters: Mapping[str, Setting] | None = None,
) -> Iterator[SecuredServer]:
    """Muster, or a real Kafka where ``SECURED_BY=kafka``: so a test is tried before it is trusted.

    Each has more settings of its own.
    """
    shared = dict(settings or {})
    if BY_KAFKA:
        with run_secured_kafka(trust, users, shared | dict(kafkas or {})) as server:
            yield server
    else:
        with run_secured_muster(folder, trust, users, shared | dict(musters or {})) as server:
            yield server


@contextmanager
def run_secured_muster(
    folder: Path,
    trust: Trust,
    users: Sequence[str],
    settings: Mapping[str, Setting] | None = None,
    *,
    grpc: str = SASL_SSL,
) -> Iterator[SecuredServer]:
    """A Muster with the same listeners, mechanisms and users.

    ``grpc`` is the protocol of its gRPC listener; that of SSL asks clients for certificates.
    """
    protocols = {"PLAINTEXT": "PLAINTEXT", **LISTENERS}
    listen = ",".join(f"{name}:{protocol}://{HOST}:0" for name, protocol in protocols.items())
    secured = compute_kafka_settings(trust, users) | dict(settings or {})
    # Passwords are taken from a file alone.
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in secured.items()))
    file.chmod(0o600)
    muster = MusterServer(
        folder / "data",
        f"--config={file}",
        f"--listen.kafka={listen}",
        f"--listen.grpc={grpc}://{HOST}:0",
        settings=_OF_GRPC[grpc],
    )
    with muster:
        addresses = {name: muster.endpoints[name] for name in LISTENERS}
        create_users(muster.kafka, users)
        yield SecuredServer(trust, muster.kafka, addresses, muster)


@contextmanager
def run_secured_kafka(
    trust: Trust, users: Sequence[str], settings: Mapping[str, Setting] | None = None
) -> Iterator[SecuredServer]:
    """A Kafka 4.3.0 with all listeners and mechanisms, and passwords for the users."""
    broker = KafkaBroker(
        compute_kafka_settings(trust, users) | dict(settings or {}),
        listeners=LISTENERS,
        jvm_options=[
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={trust.issuer.jwks.as_uri()}"
        ],
    )
    with broker:
        addresses = {name: broker.address(name) for name in LISTENERS}
        create_users(broker.bootstrap, users)
        yield SecuredServer(trust, broker.bootstrap, addresses)


def compute_kafka_settings(trust: Trust, users: Sequence[str]) -> dict[str, Setting]:
    """Those of server.properties; PLAIN has its passwords there."""
    settings: dict[str, Setting] = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(trust.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust.authority.file),
        "ssl.principal.mapping.rules": PRINCIPAL_RULES,
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": trust.issuer.jwks.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "authorizer.class.name": _AUTHORIZER,
        "super.users": ";".join(f"User:{name}" for name in SUPER_USERS),
    }
    passwords = "".join(f' user_{user}="{password_of(user)}"' for user in users)
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        scram = f"{_MODULES}.scram.ScramLoginModule required;"
        bearer = f"{_MODULES}.oauthbearer"
        settings |= {
            f"{prefix}.plain.sasl.jaas.config": (
                f"{_MODULES}.plain.PlainLoginModule required{passwords};"
            ),
            f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
            f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{bearer}.OAuthBearerLoginModule required;",
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": (
                f"{bearer}.OAuthBearerValidatorCallbackHandler"
            ),
        }
    return settings


def create_users(address: str, users: Sequence[str]) -> None:
    """The credentials of SCRAM, as an administrator makes them."""
    admin = AdminClient({"bootstrap.servers": address})
    for mechanism in _SCRAM:
        # A request may have a user once.
        rows = [
            UserScramCredentialUpsertion(
                user, ScramCredentialInfo(mechanism, _ITERATIONS), password_of(user).encode()
            )
            for user in users
        ]
        for done in admin.alter_user_scram_credentials(rows).values():
            done.result(WITHIN_S)


def create_topics(address: str, topics: Mapping[str, int]) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    rows = [NewTopic(name, partitions, 1) for name, partitions in topics.items()]
    for done in admin.create_topics(rows).values():
        done.result(WITHIN_S)


def allow(
    address: str,
    user: str,
    operation: AclOperation,
    kind: ResourceType,
    name: str,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> None:
    """An ACL for a user from everywhere."""
    admin = AdminClient({"bootstrap.servers": address})
    row = AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
    for done in admin.create_acls([row]).values():
        done.result(WITHIN_S)
