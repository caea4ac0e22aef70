"""Credentials that were found to be right, so that each call need not check them again."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from typing import Final, NamedTuple

from security.identity import Identity

REMEMBERED_MAX: Final = 10_000
"""The oldest are forgotten first."""


class _Entry(NamedTuple):
    identity: Identity
    until_s: float
    version: object


class Remembered:
    """Identities by a keyed hash of what showed them; the key is of this process alone."""

    __slots__ = ("_entries", "_kept_s", "_key")

    def __init__(self, key: bytes, kept_s: float) -> None:
        self._key = key
        self._kept_s = kept_s
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, parts: tuple[str, ...], version: object, now_s: float) -> Identity | None:
        """The identity, unless it is too old, or was noted at another ``version``."""
        digest = self.compute_digest(parts)
        entry = self._entries.get(digest)
        if entry is None:
            return None
        if now_s >= entry.until_s or entry.version != version:
            del self._entries[digest]
            return None
        return entry.identity

    def note(
        self, parts: tuple[str, ...], version: object, identity: Identity, now_s: float
    ) -> None:
        """Remember what these parts have shown, until its end and at most for the time given."""
        until_s = now_s + self._kept_s
        if identity.expires_at_ms is not None:
            until_s = min(until_s, identity.expires_at_ms / 1_000)
        digest = self.compute_digest(parts)
        self._entries.pop(digest, None)
        self._entries[digest] = _Entry(identity, until_s, version)
        if len(self._entries) > REMEMBERED_MAX:
            self._entries.popitem(last=False)

    def compute_digest(self, parts: tuple[str, ...]) -> bytes:
        """What stands for the parts: it says nothing of them to whoever lacks the key."""
        texts = [part.encode("utf-8", "surrogatepass") for part in parts]
        # With lengths, so that ("a", "bc") and ("ab", "c") differ.
        message = b"".join(len(text).to_bytes(8, "big") + text for text in texts)
        return hmac.digest(self._key, message, "sha256")
