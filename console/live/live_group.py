"""A group that is looked at: asked once for all who see the same of it, rendered once."""

from __future__ import annotations

import asyncio
import math
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final

import grpc
import structlog

from console.live.allowance import Allowance
from console.live.fragments import Fragments, Render
from console.live.group_questions import (
    ask_committed,
    ask_present,
    ask_timeline,
    read_wall_ms,
)
from console.live.group_sections import Answers, RowMaker
from console.live.group_watch import watch_group
from console.views.lag_history import LagHistory
from console.views.partitions_view import find_lags
from coordinator.service.calls.local_calls import CallRefused, LocalCalls, Visitor
from coordinator.service.wire.answer_slices import WorkClock, run_steps
from muster.v1 import admin_pb2, explain_pb2

LAG_INTERVAL_S: Final = 2.0
"""How often offsets are looked at while somebody looks at them."""
LAG_SHARE: Final = 0.02
"""Looking at the offsets of all groups that are followed takes at most this part of the time."""
SHARE: Final = 0.1
"""Showing the changes of a group takes at most this part of the time."""
SAVED_S: Final = 0.2
"""Of it so much can be saved: what a rebalance of 1,000 members takes, after which nobody waits."""

ADMITTED_S: Final = 1.0
"""So long after a page was made its stream is opened without another look at rights."""

log = structlog.get_logger()


@dataclass(slots=True)
class Followed:
    """How many groups are followed."""

    count: int = 0


class LiveGroup:
    """One group, as those of one identity see it from one host."""

    def __init__(
        self,
        calls: LocalCalls,
        group_id: str,
        visitor: Visitor,
        render: Render,
        followed: Followed | None = None,
    ) -> None:
        """``followed`` is shared by all groups."""
        self._followed = followed or Followed()
        self._calls = calls
        self._visitor = visitor
        self._history = LagHistory()
        self._rows = RowMaker(self._history)
        self._lock = asyncio.Lock()
        self._answers: Answers | None = None
        self._changed = asyncio.Event()
        self._following: list[asyncio.Task[None]] = []
        self._refreshed_s = -math.inf
        self.group_id = group_id
        self.fragments = Fragments(render)
        self.readers = 0
        self.used_s = 0.0
        """When it was last of use, on the clock of the event loop."""
        self.error: CallRefused | None = None

    async def refresh(self, visitor: Visitor) -> Answers:
        """Ask for everything, for somebody who opens the page. Raises ``CallRefused``."""
        async with self._lock:
            self._visitor = visitor
            answers = await ask_present(self._ask, self.group_id, self._rows.finder)
            await self._show(answers, has_lags=True)
            self._refreshed_s = asyncio.get_running_loop().time()
            return answers

    async def admit(self, visitor: Visitor) -> None:
        """See whether the visitor still may see it. Raises ``CallRefused``."""
        if asyncio.get_running_loop().time() - self._refreshed_s > ADMITTED_S:
            await self.refresh(visitor)

    async def wait(self, seen: int) -> None:
        """Wait for a version other than ``seen``, or the end."""
        while self.fragments.version == seen and self.error is None:
            await self._changed.wait()

    def add_reader(self) -> None:
        """Somebody is told of changes from now on; the first one makes that changes are found."""
        self.readers += 1
        if not self._following:
            self._followed.count += 1
            self._following = [
                asyncio.create_task(self._follow_changes(), name="console-group"),
                asyncio.create_task(self._follow_offsets(), name="console-offsets"),
            ]

    def remove_reader(self) -> None:
        """Somebody has gone; without readers nothing is asked."""
        self.readers -= 1
        if not self.readers:
            self.close()

    def close(self) -> None:
        """Follow the group no more."""
        if self._following:
            self._followed.count -= 1
        for task in self._following:
            task.cancel()
        self._following = []

    # ------------------------------------------------------------------------------- following

    async def _follow_changes(self) -> None:
        loop = asyncio.get_running_loop()
        allowance = Allowance(SHARE, SAVED_S, loop.time())
        try:
            async with aclosing(watch_group(self._calls, self._visitor, self.group_id)) as groups:
                async for group in groups:
                    async with self._lock:
                        worked_s = await self._show_group(group)
                    await asyncio.sleep(allowance.spend(worked_s, loop.time()))
            raise CallRefused(grpc.StatusCode.UNAVAILABLE, "the server has ended the stream")
        except CallRefused as error:
            self._end(error)
        except Exception:
            log.exception("console_group_failed", group_id=self.group_id)
            self._end(CallRefused(grpc.StatusCode.INTERNAL, "the group could not be shown"))

    async def _follow_offsets(self) -> None:
        loop = asyncio.get_running_loop()
        took_s = 0.0
        try:
            while True:
                share = LAG_SHARE / max(self._followed.count, 1)
                await asyncio.sleep(max(LAG_INTERVAL_S, took_s / share))
                began_s = loop.time()
                if self._answers is not None:
                    # Without the lock: a change that comes meanwhile is shown first.
                    group, finder = self._answers.group, self._rows.finder
                    committed = await ask_committed(self._ask, group, finder)
                    async with self._lock:
                        # Not every change of offsets is one of the group.
                        timeline = await ask_timeline(self._ask, self.group_id)
                        answers = replace(self._answers, committed=committed, timeline=timeline)
                        await self._show(answers, has_lags=True)
                took_s = loop.time() - began_s
        except CallRefused as error:
            self._end(error)
        except Exception:
            log.exception("console_offsets_failed", group_id=self.group_id)

    async def _show_group(self, group: admin_pb2.Group) -> float:
        """Show it as it is now; how long that kept the event loop busy, in seconds."""
        before = self._answers
        if before is None:
            answers = await ask_present(self._ask, self.group_id, self._rows.finder)
            return await self._show(answers, has_lags=True)
        at_ms = read_wall_ms()
        timeline = before.timeline
        if _may_have_rebalanced(before, group):
            timeline = await ask_timeline(self._ask, self.group_id)
        answers = replace(before, group=group, timeline=timeline, at_ms=at_ms)
        return await self._show(answers, has_lags=False)

    async def _show(self, answers: Answers, *, has_lags: bool) -> float:
        work = WorkClock()
        if has_lags:
            self._history.add(answers.at_ms, find_lags(answers.committed))
        self._answers = answers
        sections = await run_steps(work.measure(self._rows.make(answers)))
        if await run_steps(work.measure(self.fragments.update(sections))):
            self._tell()
        return work.seconds

    async def _ask(self, service: str, method: str, request: Any) -> Any:
        return await self._calls.call(service, method, request, self._visitor)

    def _end(self, error: CallRefused) -> None:
        self.error = error
        self._tell()

    def _tell(self) -> None:
        """Wake up all who wait."""
        self._changed.set()
        self._changed = asyncio.Event()


def _may_have_rebalanced(before: Answers, group: admin_pb2.Group) -> bool:
    shown = before.group
    is_same = (shown.group_epoch, shown.state) == (group.group_epoch, group.state)
    goes_on = any(
        each.ending == explain_pb2.REBALANCE_ENDING_GOES_ON
        for each in before.timeline.rebalances[:1]
    )
    return not is_same or goes_on or shown.assignment_epoch != group.assignment_epoch
