"""What is remembered for those who look at lists; nobody is shown what was asked as another."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from console.listing.figures import GroupFigures
from console.listing.group_index import GroupIndex
from console.listing.kept_pages import KeptPages
from console.listing.page_starts import PageStarts
from coordinator.service.calls.local_calls import LocalCalls, Visitor
from coordinator.service.credentials.peer_host import compute_client_host

VIEWERS_MAX: Final = 16
"""The most that are remembered; who has not looked for longest is forgotten."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """One visitor's figures and pages."""

    figures: GroupFigures
    index: GroupIndex
    starts: PageStarts
    pages: KeptPages


class Viewers:
    """Viewers by all that their rights may depend on."""

    __slots__ = ("_are_equal", "_calls", "_monotonic_ms", "_turns", "_viewers")

    def __init__(
        self,
        calls: LocalCalls,
        *,
        are_equal: bool = False,
        monotonic_ms: Callable[[], int] | None = None,
    ) -> None:
        """``are_equal``: there is no access control, so what one sees everybody may see."""
        self._are_equal = are_equal
        self._calls = calls
        self._monotonic_ms = monotonic_ms or _read_clock
        self._viewers: OrderedDict[Hashable, Viewer] = OrderedDict()
        self._turns = asyncio.Semaphore()

    def compute_key(self, visitor: Visitor) -> Hashable:
        """All that the visitor's rights may depend on: whoever has the same sees the same."""
        if self._are_equal:
            return None
        identity = visitor.identity
        return identity.principal, identity.groups, compute_client_host(visitor.peer)

    def find(self, visitor: Visitor) -> Viewer:
        """What is remembered for a visitor."""
        key = self.compute_key(visitor)
        viewer = self._viewers.get(key)
        if viewer is None:
            viewer = self._viewers[key] = self._make(visitor)
        self._viewers.move_to_end(key)
        if len(self._viewers) > VIEWERS_MAX:
            self._viewers.popitem(last=False)
        return viewer

    def _make(self, visitor: Visitor) -> Viewer:
        async def ask(service: str, method: str, request: Message) -> object:
            return await self._calls.call(service, method, request, visitor)

        clock = self._monotonic_ms
        return Viewer(
            GroupFigures(ask, clock),
            GroupIndex(ask, clock, self._turns),
            PageStarts(),
            KeptPages(clock),
        )


def _read_clock() -> int:
    return time.monotonic_ns() // 1_000_000
