"""Users, tokens and an audit of tests, and how a gRPC listener is told of them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from coordinator.runtime.audit import NoAudit
from coordinator.service.credentials.authentication import MetadataAuthentication
from coordinator.service.credentials.password_checks import PasswordChecks
from security.identity import Identity
from security.sasl.conversation import NotAuthenticated


class Tokens:
    """Takes tokens of the form ``USER.EXPIRY_MS``, or ``USER.never``."""

    def __init__(self) -> None:
        self.checked = 0

    def verify(self, token: str, now_s: float) -> Identity:
        self.checked += 1
        user, dot, expiry = token.partition(".")
        if not dot:
            raise NotAuthenticated("no token of a test")
        return Identity(
            f"User:{user}", (f"Group:{user}s",), None if expiry == "never" else int(expiry)
        )


def make_token(user: str, lifetime_s: float) -> str:
    """A token for ``Tokens`` that ends then."""
    return f"{user}.{int((time.time() + lifetime_s) * 1_000)}"


class Passwords:
    """Takes the password that a user has now."""

    def __init__(self, **users: str) -> None:
        self.users = dict(users)
        self.checked: list[str] = []
        self.before_check: Callable[[str], None] = lambda user: None

    def verify(self, user: str, password: str) -> Identity:
        self.before_check(user)
        self.checked.append(user)
        if self.users.get(user) != password:
            raise NotAuthenticated("wrong user or password")
        return Identity(f"User:{user}")


@dataclass
class NotedAudit(NoAudit):
    """Keeps the failed authentications that it is told of."""

    failures: list[tuple[str, str, str, str]] = field(default_factory=list)

    def not_authenticated(self, host: str, listener: str, mechanism: str, reason: str) -> None:
        self.failures.append((host, listener, mechanism, reason))


@dataclass
class Logins:
    """What a listener asks for."""

    tokens: Tokens = field(default_factory=Tokens)
    passwords: Passwords = field(default_factory=lambda: Passwords(alice="secret", bob="hidden"))
    audit: NotedAudit = field(default_factory=NotedAudit)
    delay_s: float = 0.0
    session_ms: int = 0
    _checks: PasswordChecks | None = None

    def make(self) -> MetadataAuthentication:
        """The authentication, on the running loop."""
        key = secrets.token_bytes(32)
        self._checks = PasswordChecks(self.passwords, self.passwords.users.get, key)
        return MetadataAuthentication(
            tokens=self.tokens,
            passwords=self._checks,
            delay_s=self.delay_s,
            password_session_ms=self.session_ms,
            token_session_ms=self.session_ms,
            audit=self.audit,
            key=key,
            wall_clock_s=time.time,
        )

    def stop(self) -> None:
        """End the threads."""
        if self._checks is not None:
            self._checks.stop()
