"""What a server under attack is given for TLS and SASL, in Kafka's words, and its valid client."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.interop.security import PLAIN, SCRAM_256, Security
from tests.support.certificates import Authority

PLAINTEXT = "PLAINTEXT"
USER, _ATTACKER = "bystander", "attacker"
_PASSWORDS = {USER: "a password that nobody guesses", _ATTACKER: "another"}

_USERS = " ".join(f'user_{user}="{password}"' for user, password in _PASSWORDS.items())
_LOGIN = f"org.apache.kafka.common.security.plain.PlainLoginModule required {_USERS};"
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@dataclass(frozen=True, slots=True)
class Secured:
    """Settings of the server; ``None`` for clients of a listener without security.

    ``attacker`` has a password too: it belongs, and means harm.
    """

    settings: Mapping[str, object] = field(default_factory=dict)
    security: Security | None = None
    attacker: Security | None = None


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
        for mechanism, login in ((PLAIN, _LOGIN), (SCRAM_256, _SCRAM_LOGIN)):
            name = f"listener.name.sasl_ssl.{mechanism.lower()}.sasl.jaas.config"
            settings[name] = login
        users = (
            replace(security, mechanism=PLAIN, user=user, password=password)
            for user, password in _PASSWORDS.items()
        )
        return Secured(settings, *users)
    return Secured(settings, security, security)


def raise_file_limit() -> None:
    """As many files for this process, and for the server that it starts, as it may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
