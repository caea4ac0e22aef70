"""Runs a load test: prepares the server, leads the processes, shows and returns the figures."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from cli.errors import CommandError, ExitCode
from cli.load.figures.figures import Figures
from cli.load.figures.view import View, format_errors
from cli.load.options.plan import GroupProtocol, Plan, Workload, compute_shares
from cli.load.processes.cluster import Ground, delete_groups, prepare
from cli.load.processes.workers import Workers

_NS: Final = 1_000_000_000
_HEAD_START_NS: Final = 300_000_000
"""From the order to begin until the beginning: every process has read the order by then."""
_SECOND_S: Final = 1.0
_REPORT_NS: Final = 150_000_000
"""After the end of a second every process has said what it counted in it."""

_LEAVE_S: Final = 15.0
_SETTLE_S: Final = 180.0


@dataclass(frozen=True, slots=True)
class Result:
    """The plan as it was run, its figures, and whether it was cut.

    ``joining_errors`` are those from before all members had joined, ``failures`` are lines about
    processes of the test that failed.
    """

    plan: Plan
    figures: Figures
    joining_errors: dict[str, int]
    failures: tuple[str, ...]
    seconds: float
    processes: int
    is_interrupted: bool


def run_load(plan: Plan, partitions: int | None, *, is_quiet: bool) -> Result:
    """Run a load test; ``partitions`` is the number asked for. Raises ``CommandError``."""
    return asyncio.run(_Test(plan, View(is_quiet=is_quiet)).run(partitions))


class _Test:
    def __init__(self, plan: Plan, view: View) -> None:
        self._plan = plan
        self._view = view
        self._total = Figures()
        self._joining = Figures()
        self._interrupts = 0
        self._interrupted = asyncio.Event()
        self._workers: Workers | None = None
        self._deleting: asyncio.Task[None] | None = None
        self._seconds = 0.0
        self._count = 0

    async def run(self, partitions: int | None) -> Result:
        """Everything; the members have left when it returns."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt)
        run_id = os.urandom(4).hex()
        group_ids = [f"muster-load-{run_id}-{index}" for index in range(self._plan.groups)]
        ground = await self._until_interrupted(self._prepare(partitions, group_ids))
        self._plan = replace(self._plan, partitions=ground.partitions)
        check_partitions(self._plan)
        shares = compute_shares(self._plan, ground.topic_id.hex(), group_ids, ground.coordinators)
        self._count = len(shares)
        connections = sum(share.connections for share in shares)
        if connections != self._plan.connections:
            self._view.say(f"{connections} connections are used, see docs/load.md")
            self._plan = replace(self._plan, connections=connections)
        workers = self._workers = Workers(self._plan, shares)
        self._view.start()
        try:
            await workers.start()
            await self._gather(workers)
            if workers.are_ready and not self._interrupts:
                await self._measure(workers)
        finally:
            workers.stop()
            within_s = 0.0 if self._interrupts > 1 else self._plan.timeout_s + _LEAVE_S
            await workers.end(within_s)
            self._total.merge(workers.take())
            self._view.stop()
            if self._interrupts < 2:
                await self._delete_groups(group_ids, ground.coordinators)
        if workers.failures and not self._seconds and not self._interrupts:
            raise CommandError("\n".join(dict.fromkeys(workers.failures)), ExitCode.UNREACHABLE)
        return Result(
            self._plan,
            self._total,
            dict(self._joining.errors),
            tuple(dict.fromkeys(workers.failures)),
            self._seconds,
            self._count,
            bool(self._interrupts),
        )

    def _interrupt(self) -> None:
        self._interrupts += 1
        self._interrupted.set()
        if self._workers is not None:
            self._workers.stop()
            self._workers.changed.set()
        if self._interrupts > 1:
            # Nobody waits any more, for members that leave, or for groups that are deleted.
            if self._workers is not None:
                self._workers.kill()
            if self._deleting is not None:
                self._deleting.cancel()

    async def _until_interrupted(self, work: Coroutine[Any, Any, Ground]) -> Ground:
        task = asyncio.create_task(work)
        waiting = asyncio.create_task(self._interrupted.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            raise CommandError("interrupted before the test began", ExitCode.INTERRUPTED)
        return task.result()

    async def _prepare(self, partitions: int | None, group_ids: Sequence[str]) -> Ground:
        if self._plan.protocol is GroupProtocol.SESSION:
            from cli.load.processes.session_ground import prepare_sessions

            return await prepare_sessions(self._plan, partitions)
        return await prepare(self._plan, partitions, group_ids)

    async def _delete_groups(self, group_ids: Sequence[str], addresses: Sequence[str]) -> None:
        if self._plan.protocol is GroupProtocol.SESSION:
            from cli.load.processes.session_ground import delete_session_groups

            work = delete_session_groups(self._plan, group_ids)
        else:
            work = delete_groups(self._plan, group_ids, addresses)
        self._deleting = asyncio.create_task(work)
        await asyncio.wait([self._deleting])

    async def _gather(self, workers: Workers) -> None:
        """Wait until all members have joined. Raises ``CommandError`` if they do not in time."""
        began = time.monotonic()
        said_at = began
        while not (workers.are_ready or workers.failures or workers.are_done or self._interrupts):
            now = time.monotonic()
            if now - began > max(_SETTLE_S, self._plan.timeout_s):
                self._total.merge(workers.take())
                errors = ", ".join(self._total.errors) or "no errors"
                raise CommandError(
                    f"{workers.joined} of {self._plan.members} members joined, and the groups are "
                    f"not complete after {now - began:.0f} s ({errors}): use fewer --members"
                )
            if now - said_at >= _SECOND_S and self._plan.members:
                said_at = now
                self._view.say(f"{workers.joined} of {self._plan.members} members have joined")
            await self._wait_for_change(workers, _SECOND_S / 4)
        self._total.merge(workers.take())
        if workers.are_ready and self._plan.members:
            errors = f"; errors: {format_errors(self._total)}" if self._total.errors else ""
            self._view.say(
                f"{self._plan.members} members of {self._plan.groups} groups have joined, after "
                f"{time.monotonic() - began:.1f} s{errors}"
            )

    async def _measure(self, workers: Workers) -> None:
        """Send the load, and show its figures each second."""
        self._joining, self._total = self._total, Figures()
        if not self._plan.churn:
            # Else the joins of the beginning, when all come at once, are not those that count.
            self._total.convergence = self._joining.convergence
        ramp_ns, plan = int(self._plan.ramp_s * _NS), self._plan
        start_ns = time.monotonic_ns() + _HEAD_START_NS
        begin_ns = start_ns + ramp_ns
        end_ns = begin_ns + int(plan.duration_s * _NS)
        workers.go(start_ns, end_ns)
        shown_ns, limit_ns = begin_ns, end_ns + int((plan.timeout_s + _LEAVE_S) * _NS)
        while not (workers.are_done or self._interrupts) and time.monotonic_ns() < limit_ns:
            await self._wait_for_change(workers, _SECOND_S / 20)
            if time.monotonic_ns() - shown_ns >= _NS + _REPORT_NS:
                self._show_second(workers.take(), shown_ns, begin_ns, end_ns)
                shown_ns += _NS
        if not self._interrupts:
            self._show_second(workers.take(), shown_ns, begin_ns, end_ns)
        self._seconds = max(0.0, (min(time.monotonic_ns(), end_ns) - begin_ns) / _NS)

    def _show_second(self, recent: Figures, from_ns: int, begin_ns: int, end_ns: int) -> None:
        """Show the figures of a second, unless it is past the end."""
        self._total.merge(recent)
        until_ns = min(from_ns + _NS, end_ns)
        if until_ns > from_ns:
            moment = f"{(until_ns - begin_ns) / _NS:.0f} s"
            self._view.show(moment, recent, (until_ns - from_ns) / _NS)

    async def _wait_for_change(self, workers: Workers, within_s: float) -> None:
        workers.changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await workers.changed.wait()


def check_partitions(plan: Plan) -> None:
    """Raise ``CommandError`` if a commit has more partitions than the topic, or than a member."""
    if plan.commit_partitions > plan.partitions:
        raise CommandError(
            f"topic {plan.topic} has {plan.partitions} partitions, "
            f"fewer than --commit-partitions {plan.commit_partitions}",
            ExitCode.USAGE,
        )
    most = -(-plan.members // plan.groups)
    if (
        plan.protocol is GroupProtocol.SESSION
        and plan.workload is Workload.COMMITS
        and plan.partitions < most * plan.commit_partitions
    ):
        raise CommandError(
            f"{plan.partitions} partitions for {most} members of a group are fewer than "
            f"--commit-partitions {plan.commit_partitions} for each, and members commit what they "
            "own: use fewer --members",
            ExitCode.USAGE,
        )
