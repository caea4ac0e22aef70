"""Unary requests of one member in the order in which its client made them.

A client that has given a connection up repeats its request over another one. What the first still
holds may arrive after that, and after later requests.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, NamedTuple

MEMBERS_MAX: Final = 65_536
"""So many members are remembered, those whose requests came last."""


class Noted(NamedTuple):
    """A number that came, of whom, and the highest before it."""

    digest: bytes
    sequence: int
    before: int


NO_NUMBER: Final = Noted(b"", 0, 0)


class Sequences:
    """The highest number that came of each member, by whatever tells it from others.

    Of that there is only a digest: ids may have 32,767 bytes.
    """

    __slots__ = ("_highest",)

    def __init__(self) -> None:
        self._highest: OrderedDict[bytes, int] = OrderedDict()

    def note(self, key: Hashable, sequence: int) -> Noted | None:
        """``None`` where a higher one came before. 0 is no number."""
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
        """What came with this number was refused: it counts no more than if it had not come.

        Whoever may not commit as the member would else stop its own commits for good.
        """
        if self._highest.get(noted.digest) == noted.sequence:
            self._highest[noted.digest] = noted.before


def _compute_digest(key: Hashable) -> bytes:
    return hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
