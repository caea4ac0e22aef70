"""What an application sees: every callback, in order, and who owns what at each moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from muster.membership import Partitions

Hold: TypeAlias = Callable[[str, Partitions], Awaitable[None]]


class Ledger:
    """All members of a test write into it; two owners at once are a failure."""

    def __init__(self) -> None:
        self.owner_of: dict[tuple[str, int], str] = {}
        self.events: list[tuple[str, str, frozenset[int]]] = []
        self.overlaps: list[str] = []


class Watcher:
    """The callbacks of one application. ``hold`` is awaited within each callback, if given."""

    def __init__(self, ledger: Ledger, name: str, hold: Hold | None = None) -> None:
        self._ledger = ledger
        self._name = name
        self._hold = hold

    async def on_assigned(self, partitions: Partitions) -> None:
        for partition in partitions:
            owner = self._ledger.owner_of.get(partition)
            if owner is not None:
                self._ledger.overlaps.append(f"{partition} of {owner} given to {self._name}")
            self._ledger.owner_of[partition] = self._name
        await self._note("assigned", partitions)

    async def on_revoked(self, partitions: Partitions) -> None:
        await self._note("revoked", partitions)
        self._release(partitions)

    async def on_lost(self, partitions: Partitions) -> None:
        self._release(partitions)
        await self._note("lost", partitions)

    def _release(self, partitions: Partitions) -> None:
        for partition in partitions:
            if self._ledger.owner_of.get(partition) == self._name:
                del self._ledger.owner_of[partition]

    async def _note(self, event: str, partitions: Partitions) -> None:
        indexes = frozenset(partition.partition for partition in partitions)
        self._ledger.events.append((self._name, event, indexes))
        if self._hold is not None:
            await self._hold(event, partitions)
