"""Unary requests of one member in the order in which its client made them.

A client that has given a connection up repeats its request over another one. What the first still
holds may arrive after that, and after later requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

MEMBERS_MAX: Final = 65_536
"""So many members are remembered, those whose requests came last."""


class Sequences:
    """The highest number that came of each member, by whatever tells it from others."""

    __slots__ = ("_highest",)

    def __init__(self) -> None:
        self._highest: OrderedDict[Hashable, int] = OrderedDict()

    def note(self, key: Hashable, sequence: int) -> bool:
        """``False`` where a higher one came before. 0 is no number."""
        if not sequence:
            return True
        highest = self._highest.get(key, 0)
        if sequence < highest:
            return False
        self._highest[key] = sequence
        self._highest.move_to_end(key)
        if len(self._highest) > MEMBERS_MAX:
            self._highest.popitem(last=False)
        return True

    def find(self, key: Hashable) -> int:
        """The highest that came of the member; 0 where none did."""
        return self._highest.get(key, 0)

    def withdraw(self, key: Hashable, sequence: int, before: int) -> None:
        """What came with this number was refused: it counts no more than if it had not come.

        Whoever may not commit as the member would else stop its own commits for good.
        """
        if self._highest.get(key) == sequence:
            self._highest[key] = before
