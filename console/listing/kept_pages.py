"""Pages that are kept for a moment, because many look at the same one, again and again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, NamedTuple

PAGES_MAX: Final = 100
"""Those that nobody has looked at for longest are forgotten."""
KEPT_COSTS: Final = 50
"""A page is kept for so many times what it cost: looking takes two percent of the time at most."""
KEPT_MS_MAX: Final = 5_000
"""No longer: a right may have been taken away since."""
UNFINISHED_MS: Final = 500
"""A page on which something is still missing is kept no longer."""


class Made(NamedTuple):
    """A page: its HTML, what it cost (ms), and whether nothing on it is still to come."""

    html: str
    cost_ms: int
    is_whole: bool


class KeptPages:
    """Pages of one visitor by what they show."""

    __slots__ = ("_making", "_monotonic_ms", "_pages")

    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._pages: OrderedDict[Hashable, tuple[Made, int]] = OrderedDict()
        self._making: dict[Hashable, asyncio.Task[Made]] = {}

    async def find(self, key: Hashable, make: Callable[[], Awaitable[Made]]) -> str:
        """The page, made now unless it is kept. Who asks while it is made waits for the same one.

        Raises what ``make`` raises.
        """
        kept = self._pages.get(key)
        if kept is not None and self._monotonic_ms() < kept[1]:
            return kept[0].html
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.ensure_future(self._make(key, make))
        return (await asyncio.shield(making)).html

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[Made]]) -> Made:
        try:
            made = await make()
        finally:
            del self._making[key]
        most_ms = KEPT_MS_MAX if made.is_whole else UNFINISHED_MS
        kept_ms = min(KEPT_COSTS * made.cost_ms, most_ms)
        self._pages[key] = (made, self._monotonic_ms() + kept_ms)
        self._pages.move_to_end(key)
        if len(self._pages) > PAGES_MAX:
            self._pages.popitem(last=False)
        return made
