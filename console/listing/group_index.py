"""All groups by lag or by their last rebalance, as no list of the server has them.

It is gathered in the background, as long as somebody looks, with a part of the event loop's time;
so it is always somewhat old, and says how old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from console.listing.asking import Ask
from console.listing.figures import ask_lag, ask_last_rebalance
from console.views.lag_view import Lag
from coordinator.service.calls.local_calls import CallRefused
from muster.v1 import admin_pb2

GROUPS_MAX: Final = 50_000
"""Groups beyond these, by id, are not in it."""
LOOKED_AT_MS: Final = 60_000
"""Nobody looks any more after such a silence."""
PAUSE_MS: Final = 10_000
"""Between two passes over all groups."""
SHARE: Final = 4
"""One part of so many of the time goes into gathering."""
_PAGE: Final = 500
_TURN_MS: Final = 5


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A group as it was when it was looked at."""

    summary: admin_pb2.GroupSummary
    lag: Lag
    rebalanced_ms: int | None
    goes_on: bool


class Gathered(NamedTuple):
    """``rows`` are those of ``total`` groups that were looked at.

    ``age_ms``: so long ago the last pass over all of them began; ``None`` before it has ended.
    """

    rows: Sequence[IndexRow]
    total: int
    age_ms: int | None


class GroupIndex:
    """The groups that one visitor may see."""

    __slots__ = (
        "_ask",
        "_asked_ms",
        "_gathering",
        "_monotonic_ms",
        "_passed_ms",
        "_rows",
        "_total",
        "_turns",
    )

    def __init__(self, ask: Ask, monotonic_ms: Callable[[], int], turns: asyncio.Semaphore) -> None:
        """``turns`` are shared by all who gather: together they cost no more than one."""
        self._ask = ask
        self._turns = turns
        self._monotonic_ms = monotonic_ms
        self._rows: dict[str, IndexRow] = {}
        self._total = 0
        self._passed_ms: int | None = None
        self._asked_ms = 0
        self._gathering: asyncio.Task[None] | None = None

    def find(self) -> Gathered:
        """What is gathered so far; goes on gathering for a while."""
        self._asked_ms = self._monotonic_ms()
        if self._gathering is None:
            self._gathering = asyncio.create_task(self._gather())
        age_ms = None if self._passed_ms is None else self._asked_ms - self._passed_ms
        return Gathered(tuple(self._rows.values()), max(self._total, len(self._rows)), age_ms)

    async def _gather(self) -> None:
        try:
            while self._monotonic_ms() - self._asked_ms < LOOKED_AT_MS:
                began_ms = self._monotonic_ms()
                await self._pass()
                self._passed_ms = began_ms
                await asyncio.sleep(PAUSE_MS / 1_000)
        except CallRefused:
            # As over a quota: whoever looks again begins again, with what is there already.
            pass
        finally:
            self._gathering = None

    async def _pass(self) -> None:
        """Look at every group once."""
        seen: set[str] = set()
        token = ""
        while len(seen) < GROUPS_MAX:
            request = admin_pb2.ListGroupsRequest(page_size=_PAGE, page_token=token)
            answer = await self._ask("AdminService", "ListGroups", request)
            self._total = answer.total_size
            await self._look_at(answer.groups)
            seen.update(group.group_id for group in answer.groups)
            token = answer.next_page_token
            if not token or self._monotonic_ms() - self._asked_ms >= LOOKED_AT_MS:
                break
        if not token:
            for gone in self._rows.keys() - seen:
                del self._rows[gone]

    async def _look_at(self, groups: Sequence[admin_pb2.GroupSummary]) -> None:
        left = iter(groups)
        group = next(left, None)
        while group is not None:
            async with self._turns:
                began_ms, took_ms = self._monotonic_ms(), 0
                while group is not None and took_ms < _TURN_MS:
                    self._rows[group.group_id] = await self._make_row(group)
                    took_ms = self._monotonic_ms() - began_ms
                    group = next(left, None)
                await asyncio.sleep((SHARE - 1) * took_ms / 1_000)

    async def _make_row(self, group: admin_pb2.GroupSummary) -> IndexRow:
        lag = await ask_lag(self._ask, group.group_id)
        before = self._rows.get(group.group_id)
        if before is not None and not before.goes_on and _is_same_epoch(before.summary, group):
            return IndexRow(group, lag, before.rebalanced_ms, False)
        last = await ask_last_rebalance(self._ask, group.group_id)
        if last is None:
            return IndexRow(group, lag, None, False)
        return IndexRow(group, lag, last.began_ms, last.goes_on)


def _is_same_epoch(before: admin_pb2.GroupSummary, now: admin_pb2.GroupSummary) -> bool:
    return (before.group_epoch, before.group_type) == (now.group_epoch, now.group_type)
