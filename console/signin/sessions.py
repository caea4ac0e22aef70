"""Who has signed in, by the cookie of the browser."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from security.identity import Identity

SESSIONS_MAX: Final = 1_000
SESSIONS_OF_PRINCIPAL_MAX: Final = 20
"""So nobody signs everybody else out by signing in often."""


@dataclass(frozen=True, slots=True)
class Session:
    """Who it is. ``ends_ms`` is monotonic: whatever is done, it ends then."""

    identity: Identity
    ends_ms: int
    seen_ms: int


class Sessions:
    """A bounded number of sessions; of too many the one that was silent for longest ends.

    What is kept is a hash of the cookie: it signs nobody in.
    """

    __slots__ = ("_idle_ms", "_longest_ms", "_monotonic_ms", "_sessions", "_wall_ms")

    def __init__(
        self,
        *,
        idle_ms: int,
        longest_ms: int,
        monotonic_ms: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        """``idle_ms``: a session ends after such a silence, after ``longest_ms`` in any case."""
        self._idle_ms = idle_ms
        self._longest_ms = longest_ms
        self._monotonic_ms = monotonic_ms
        self._wall_ms = wall_ms
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def open(self, secret: str, identity: Identity) -> None:
        """Begin a session, which ends no later than what showed the identity."""
        now_ms = self._monotonic_ms()
        lasts_ms = self._longest_ms
        if identity.expires_at_ms is not None:
            lasts_ms = min(lasts_ms, identity.expires_at_ms - self._wall_ms())
        self._drop_ended(now_ms)
        own = [
            key
            for key, session in self._sessions.items()
            if session.identity.principal == identity.principal
        ]
        if len(own) >= SESSIONS_OF_PRINCIPAL_MAX:
            del self._sessions[own[0]]
        if len(self._sessions) >= SESSIONS_MAX:
            self._sessions.popitem(last=False)
        self._sessions[_compute_key(secret)] = Session(identity, now_ms + lasts_ms, now_ms)

    def find(self, secret: str) -> Session | None:
        """The session of a browser that has asked for something just now."""
        key, now_ms = _compute_key(secret), self._monotonic_ms()
        session = self._sessions.get(key)
        if session is None:
            return None
        if self._has_ended(session, now_ms):
            del self._sessions[key]
            return None
        self._sessions[key] = replace(session, seen_ms=now_ms)
        self._sessions.move_to_end(key)
        return session

    def is_open(self, secret: str) -> bool:
        """Whether the session goes on. It does not count as being asked for something."""
        session = self._sessions.get(_compute_key(secret))
        return session is not None and not self._has_ended(session, self._monotonic_ms())

    def close(self, secret: str) -> None:
        """End a session."""
        self._sessions.pop(_compute_key(secret), None)

    def _has_ended(self, session: Session, now_ms: int) -> bool:
        return now_ms >= min(session.ends_ms, session.seen_ms + self._idle_ms)

    def _drop_ended(self, now_ms: int) -> None:
        ended = [key for key, each in self._sessions.items() if self._has_ended(each, now_ms)]
        for key in ended:
            del self._sessions[key]


def _compute_key(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
