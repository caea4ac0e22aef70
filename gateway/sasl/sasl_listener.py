"""What the clients of one listener have to show, and for how long it holds."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.sasl.logins import Logins
from security.sasl.claimed_names import NameReader
from security.sasl.conversation import Mechanism


class KeySource(Protocol):
    """Where the keys of tokens come from."""

    def refresh(self, done: Callable[[], None]) -> None:
        """Look for newer keys and call ``done`` on the loop; at once if that was just done."""


def make_nonce() -> str:
    """A nonce of 144 random bits."""
    return secrets.token_urlsafe(18)


@dataclass(frozen=True, slots=True)
class SaslListener:
    """SASL on one listener. Times in milliseconds.

    ``mechanisms`` are the enabled ones by name. ``reauth_ms`` is ``connections.max.reauth.ms`` of
    mechanisms that have it. ``now_s`` is the time since 1970, which tokens name.

    With ``logins`` nothing is verified here, and there are no ``mechanisms``: clients log in to the
    cluster that is behind, by the mechanisms that it has and ``readers`` know.
    """

    mechanisms: Mapping[str, Mechanism]
    max_receive_size: int = 524_288
    reauth_ms: Mapping[str, int] = field(default_factory=dict)
    timeout_ms: int = 30_000
    failure_delay_ms: int = 100
    keys: KeySource | None = None
    logins: Logins | None = None
    readers: Mapping[str, NameReader] = field(default_factory=dict)
    now_s: Callable[[], float] = time.time
    make_nonce: Callable[[], str] = make_nonce
