"""Ordering of a member's unary requests by the sequence numbers that its client assigns.

A client that abandons a connection repeats its request on another one. The original request may
still arrive after the repeated one, and after later requests.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, NamedTuple

MEMBERS_MAX: Final = 65_536
"""The number of members remembered: those with the most recent requests."""


class Noted(NamedTuple):
    """A noted sequence number: the digest of its key, and the highest number before it."""

    digest: bytes
    sequence: int
    before: int


NO_NUMBER: Final = Noted(b"", 0, 0)


class Sequences:
    """The highest sequence number received per member, by a key that identifies the member.

    Holds only a digest of each key, because ids may have 32,767 bytes.
    """

    __slots__ = ("_highest",)

    def __init__(self) -> None:
        self._highest: OrderedDict[bytes, int] = OrderedDict()

    def note(self, key: Hashable, sequence: int) -> Noted | None:
        """Note a number; returns ``None`` if a higher one came before. 0 means unnumbered."""
        if not sequence:
            return NO_NUMBER
        digest = _compute_digest(key)
        before = self._highest.get(digest, 0)
        if sequence < before:
            return None
        self._highest[digest] = sequence
        self._highest.move_to_end(digest)
        if len(self._highest) > MEMBERS_MAX:
            self._highest.popitem(last=False)
        return Noted(digest, sequence, before)

    def withdraw(self, noted: Noted) -> None:
        """Forget a number whose request was rejected.

        Otherwise a client that may not commit as the member could block the member's own commits.
        """
        if self._highest.get(noted.digest) == noted.sequence:
            self._highest[noted.digest] = noted.before


def _compute_digest(key: Hashable) -> bytes:
    return hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
