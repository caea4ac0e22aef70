"""Unary requests of one member in the order in which its client made them.

A client that has given a connection up repeats its request over another one. What the first still
holds may arrive after that, and after later requests.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

MEMBERS_MAX: Final = 65_536
"""So many members are remembered, those whose requests came last."""


class Sequences:
    """The highest number that came of each member, by whatever tells it from others.

    Of that there is only a digest: ids may have 32,767 bytes.
    """

    __slots__ = ("_highest",)

    def __init__(self) -> None:
        self._highest: OrderedDict[bytes, int] = OrderedDict()

    def note(self, key: Hashable, sequence: int) -> bool:
        """``False`` where a higher one came before. 0 is no number."""
        if not sequence:
            return True
        digest = _compute_digest(key)
        if sequence < self._highest.get(digest, 0):
            return False
        self._highest[digest] = sequence
        self._highest.move_to_end(digest)
        if len(self._highest) > MEMBERS_MAX:
            self._highest.popitem(last=False)
        return True

    def find(self, key: Hashable) -> int:
        """The highest that came of the member; 0 where none did."""
        return self._highest.get(_compute_digest(key), 0)

    def withdraw(self, key: Hashable, sequence: int, before: int) -> None:
        """What came with this number was refused: it counts no more than if it had not come.

        Whoever may not commit as the member would else stop its own commits for good.
        """
        digest = _compute_digest(key)
        if self._highest.get(digest) == sequence:
            self._highest[digest] = before


def _compute_digest(key: Hashable) -> bytes:
    return hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
