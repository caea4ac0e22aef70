"""What a list shows of a group that no list tells: its lag, and why it rebalanced last.

Each costs a call or two, so it is asked for what is on somebody's page, and not more often than
looking makes sense.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import grpc

from console.listing.asking import Ask
from console.views.lag_view import Lag, compute_group_lag
from coordinator.service.calls.local_calls import CallRefused
from coordinator.service.wire.answer_slices import run_steps
from muster.v1 import explain_pb2, group_pb2
from wording.causes import describe_cause

FRESH_MS: Final = 5_000
"""For so long figures are not asked for again."""
FRESH_COSTS: Final = 20
"""Nor for so many times what they cost: one group may have a hundred thousand offsets."""
GROUPS_MAX: Final = 1_000
"""Groups whose figures are remembered; those that nobody has seen for longest are forgotten."""
SAMPLES_MAX: Final = 60
CAUSE_CHARS: Final = 160

_NOTHING_TO_SEE: Final = ("GROUP_ID_NOT_FOUND", "GROUP_AUTHORIZATION_FAILED")


@dataclass(frozen=True, slots=True)
class LastRebalance:
    """``cause`` is in words, and not too many of them."""

    began_ms: int
    cause: str
    goes_on: bool


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one group. ``at_ms`` and ``took_ms`` are monotonic."""

    lag: Lag
    rebalance: LastRebalance | None
    at_ms: int
    took_ms: int

    def is_fresh(self, now_ms: int) -> bool:
        """Whether asking again would cost more than it tells."""
        return now_ms - self.at_ms < max(FRESH_MS, FRESH_COSTS * self.took_ms)


@dataclass(slots=True)
class Watched:
    """A group that somebody looks at. ``samples`` are (monotonic ms, number)."""

    figures: Figures | None = None
    lags: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=SAMPLES_MAX))
    members: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=SAMPLES_MAX))


class GroupFigures:
    """The figures of the groups that one visitor looks at."""

    __slots__ = ("_ask", "_monotonic_ms", "_wanted", "_watched", "_working")

    def __init__(self, ask: Ask, monotonic_ms: Callable[[], int]) -> None:
        self._ask = ask
        self._monotonic_ms = monotonic_ms
        self._watched: OrderedDict[str, Watched] = OrderedDict()
        self._wanted: dict[str, asyncio.Future[None]] = {}
        self._working: asyncio.Task[None] | None = None

    async def look(self, members: Mapping[str, int], within_s: float) -> Mapping[str, Watched]:
        """What is known of groups, by their ids with the number of members, after such a wait.

        What takes longer goes on, and is there for who looks again.
        """
        now_ms = self._monotonic_ms()
        asked = [
            self._want(group_id) for group_id in members if not self._is_fresh(group_id, now_ms)
        ]
        if asked:
            await asyncio.wait(asked, timeout=within_s)
        found = {}
        for group_id, count in members.items():
            watched = found[group_id] = self._find(group_id)
            _sample(watched.members, now_ms, count)
        return found

    def _is_fresh(self, group_id: str, now_ms: int) -> bool:
        watched = self._watched.get(group_id)
        return bool(watched and watched.figures and watched.figures.is_fresh(now_ms))

    def _find(self, group_id: str) -> Watched:
        watched = self._watched.setdefault(group_id, Watched())
        self._watched.move_to_end(group_id)
        if len(self._watched) > GROUPS_MAX:
            self._watched.popitem(last=False)
        return watched

    def _want(self, group_id: str) -> asyncio.Future[None]:
        wanted = self._wanted.get(group_id)
        if wanted is None:
            if len(self._wanted) >= GROUPS_MAX:
                self._wanted.pop(next(iter(self._wanted))).cancel()
            wanted = asyncio.get_running_loop().create_future()
            self._wanted[group_id] = wanted
            if self._working is None:
                self._working = asyncio.create_task(self._work())
        return wanted

    async def _ask_one(self, group_id: str) -> Figures:
        return await ask_figures(self._ask, group_id, self._monotonic_ms)

    def _note(self, group_id: str, figures: Figures) -> None:
        watched = self._find(group_id)
        watched.figures = figures
        if figures.lag.records is not None and not figures.lag.unknown:
            _sample(watched.lags, figures.at_ms, figures.lag.records)

    async def _work(self) -> None:
        """Ask for one group after another: what is behind all pages costs no more than one call."""
        try:
            while self._wanted:
                group_id = next(iter(self._wanted))
                # As over a quota, or while groups are loaded: whoever looks again asks again.
                with suppress(CallRefused):
                    self._note(group_id, await self._ask_one(group_id))
                wanted = self._wanted.pop(group_id, None)
                if wanted is not None and not wanted.done():
                    wanted.set_result(None)
        finally:
            self._working = None
            for left in self._wanted.values():
                left.cancel()
            self._wanted.clear()


async def ask_figures(ask: Ask, group_id: str, monotonic_ms: Callable[[], int]) -> Figures:
    """The figures now. Raises ``CallRefused`` if they cannot be had now."""
    began_ms = monotonic_ms()
    lag = await ask_lag(ask, group_id)
    rebalance = await ask_last_rebalance(ask, group_id)
    now_ms = monotonic_ms()
    return Figures(lag, rebalance, now_ms, now_ms - began_ms)


async def ask_lag(ask: Ask, group_id: str) -> Lag:
    """The lag of a group; none of a group that is not there or not to be seen.

    Raises ``CallRefused`` if it cannot be had now.
    """
    request = group_pb2.FetchOffsetsRequest(group_id=group_id, with_end_offsets=True)
    answer = await ask("GroupService", "FetchOffsets", request)
    if answer.error.reason and answer.error.reason not in _NOTHING_TO_SEE:
        error = answer.error
        raise CallRefused(grpc.StatusCode.UNAVAILABLE, error.error_message, error.reason)
    return await run_steps(compute_group_lag(answer.topics))


async def ask_last_rebalance(ask: Ask, group_id: str) -> LastRebalance | None:
    """The last rebalance of a group; none of a group that is not there or not to be seen.

    Raises ``CallRefused`` if it cannot be had now.
    """
    request = explain_pb2.ExplainGroupRequest(group_id=group_id, page_size=1)
    try:
        answer = await ask("ExplainService", "ExplainGroup", request)
    except CallRefused as refused:
        if refused.reason in _NOTHING_TO_SEE:
            return None
        raise
    for rebalance in answer.rebalances:
        goes_on = rebalance.ending == explain_pb2.REBALANCE_ENDING_GOES_ON
        cause = describe_cause(rebalance)
        if len(cause) > CAUSE_CHARS:
            cause = f"{cause[:CAUSE_CHARS]}…"
        return LastRebalance(rebalance.began_ms, cause, goes_on)
    return None


def _sample(samples: deque[tuple[int, int]], at_ms: int, number: int) -> None:
    if not samples or at_ms - samples[-1][0] >= FRESH_MS:
        samples.append((at_ms, number))
