"""Where the pages of a list begin: page tokens by number, of lists that somebody has looked at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

LISTS_MAX: Final = 200
"""The most lists; those that nobody has looked at for longest are forgotten."""
STARTS_MAX: Final = 2_000
"""The most pages of one list; beyond them a page is found from the last of these."""

FIRST: Final = 1


class PageStarts:
    """The tokens of ``next_page_token``, which only lead on from one page to the next."""

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: OrderedDict[Hashable, dict[int, str]] = OrderedDict()

    def find(self, key: Hashable, number: int) -> tuple[int, str]:
        """The page from which to go on to this one: itself, or the last known before; its token.

        ``key`` is the list: who asks for it, and for what.
        """
        starts = self._lists.get(key, {})
        known = max((start for start in starts if start <= number), default=FIRST)
        return known, starts.get(known, "")

    def note(self, key: Hashable, number: int, token: str) -> None:
        """Remember where a page begins."""
        starts = self._lists.setdefault(key, {})
        self._lists.move_to_end(key)
        if len(starts) < STARTS_MAX or number in starts:
            starts[number] = token
        if len(self._lists) > LISTS_MAX:
            self._lists.popitem(last=False)
