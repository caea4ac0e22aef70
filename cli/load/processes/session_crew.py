"""One process of a load test over gRPC: members of the SDK, their commits, and their sessions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from functools import partial
from itertools import islice
from pathlib import Path
from time import monotonic_ns
from typing import Any, Final

import muster
from cli.load.figures.recorder import Recorder
from cli.load.members.group import Group
from cli.load.options.plan import Plan, Share, Workload
from cli.load.processes.polling import poll_until, tick
from cli.load.wire.request_schedule import RequestSchedule
from muster import TopicPartition

_NS: Final = 1_000_000_000
_WAVE: Final = 200
_POLL_S: Final = 0.002
_LEAVE_S: Final = 5.0
_STOP_S: Final = 1.0
"""How long an interrupted test waits for answers."""


class SessionMember:
    """A member of the SDK, and what its group is told about it.

    Callbacks say which partitions it owns, and the epoch is looked at: the SDK acknowledges by
    itself.
    """

    def __init__(self, client: muster.Client, group: Group, topic: str) -> None:
        self.group = group
        self.epoch = 0
        self._owned = 0
        self._has_left = False
        self.member = muster.Member(
            client,
            group.group_id,
            topics=[topic],
            on_assigned=lambda partitions: self._change(len(partitions)),
            on_revoked=lambda partitions: self._change(-len(partitions)),
            on_lost=lambda partitions: self._change(-len(partitions)),
            max_poll_interval_ms=None,
        )

    def look(self) -> None:
        """Tell the group of a new epoch."""
        if self.member.epoch != self.epoch:
            self._change(0)

    def leave(self) -> Group:
        """Tell its group, which is returned, that it is gone, and nothing any more."""
        self.group.remove(self.epoch, self._owned, 0)
        self._has_left = True
        return self.group

    def _change(self, more: int) -> None:
        if self._has_left:
            return
        old_epoch, self.epoch = self.epoch, self.member.epoch
        self._owned += more
        self.group.move(old_epoch, self.epoch, more, 0)


class SessionCrew:
    """Everything that one process does over gRPC."""

    def __init__(self, plan: Plan, share: Share, recorder: Recorder) -> None:
        self._plan = plan
        self._share = share
        self._schedule = RequestSchedule(share.rate, int(plan.ramp_s * _NS))
        self._recorder = recorder
        self._clients: list[muster.Client] = []
        self._members: deque[SessionMember] = deque()
        self._groups = [
            Group(group.group_id, plan.partitions, recorder.record_convergence)
            for group in share.groups
        ]
        self._tasks: set[asyncio.Task[None]] = set()
        self._end_ns = 1 << 63
        self._drain_s = plan.timeout_s
        self._turn = 0

    async def gather(self) -> None:
        """Connect, and let all members join."""
        for _ in range(self._share.connections):
            self._clients.append(await make_client(self._plan).__aenter__())
        self._start(self._look_at_epochs())
        wanted = (
            group
            for group, share in zip(self._groups, self._share.groups, strict=True)
            for _ in range(share.members)
        )
        while wave := list(islice(wanted, _WAVE)):
            await asyncio.gather(*(self._join(group) for group in wave))
        await poll_until(lambda: all(group.is_complete for group in self._groups), _POLL_S)

    def count_joined(self) -> int:
        """How many members have joined."""
        return sum(1 for each in self._members if each.epoch)

    async def run(self, start_ns: int, end_ns: int) -> None:
        """Send the load from one time to another."""
        self._schedule.start(start_ns, end_ns)
        self._end_ns = end_ns
        await asyncio.sleep(max(0, start_ns - monotonic_ns()) / _NS)
        if self._share.churn:
            self._start(self._replace_members(start_ns))
        senders = 0
        if self._plan.workload is Workload.COMMITS:
            senders = self._share.connections * self._plan.in_flight
        sending = [asyncio.create_task(self._send(i, senders)) for i in range(senders)]
        await poll_until(lambda: monotonic_ns() >= self._end_ns, _POLL_S)
        if sending:
            await asyncio.wait(sending, timeout=self._drain_s)
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        self._recorder.record_not_sent(self._schedule, monotonic_ns())
        deadline_ns = monotonic_ns() + int(self._drain_s * _NS)
        await poll_until(
            lambda: (
                monotonic_ns() >= deadline_ns
                or not any(group.is_converging for group in self._groups)
            ),
            _POLL_S,
        )
        self._recorder.record_not_converged(sum(group.give_up() for group in self._groups))

    def stop(self, now_ns: int) -> None:
        """End the load now."""
        self._schedule.stop(now_ns)
        self._end_ns = min(self._end_ns, now_ns)
        self._drain_s = min(self._drain_s, _STOP_S)

    async def leave(self) -> None:
        """Let all members leave, and close the connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        limit_ms = int(_LEAVE_S * 1000)
        leaving = [each.member.close(timeout_ms=limit_ms) for each in self._members]
        try:
            async with asyncio.timeout(_LEAVE_S + 1):
                await asyncio.gather(*leaving, return_exceptions=True)
                await asyncio.gather(*(each.close() for each in self._clients))
        except TimeoutError:
            self._recorder.count_error("TIMED_OUT")

    async def _join(self, group: Group) -> None:
        each = SessionMember(
            self._clients[len(self._members) % len(self._clients)], group, self._plan.topic
        )
        self._members.append(each)
        group.begin_join()
        try:
            await each.member.join()
        except (muster.MusterError, OSError, TimeoutError) as error:
            self._recorder.count_error(name_failure(error))
        each.look()

    async def _send(self, index: int, senders: int) -> None:
        """Commit while something is due, one at a time."""
        if not self._schedule.is_held:
            await asyncio.sleep(self._plan.ramp_s * index / senders)
        while True:
            now_ns = monotonic_ns()
            intended_ns = self._schedule.take(now_ns)
            if intended_ns is None:
                if now_ns >= self._end_ns:
                    return
                await asyncio.sleep(_POLL_S / 2)
                continue
            await self._commit(intended_ns)

    async def _commit(self, intended_ns: int) -> None:
        each = self._find_owner()
        if each is None:
            self._recorder.record_unanswered("NOTHING_OWNED", monotonic_ns(), intended_ns)
            await asyncio.sleep(_POLL_S)
            return
        owned = islice(each.member.assignment, self._plan.commit_partitions)
        offsets = {TopicPartition(*place): self._turn for place in owned}
        sent_ns = monotonic_ns()
        try:
            async with asyncio.timeout(self._plan.timeout_s):
                await each.member.commit(offsets)
        except (muster.MusterError, OSError, TimeoutError) as error:
            self._recorder.record_unanswered(name_failure(error), monotonic_ns(), intended_ns)
            await asyncio.sleep(_POLL_S)
        else:
            self._recorder.record(monotonic_ns(), intended_ns, sent_ns, 0)

    def _find_owner(self) -> SessionMember | None:
        """The next member in turn that owns what a commit needs: the SDK sends no empty one."""
        for _ in range(len(self._members)):
            each = self._members[self._turn % len(self._members)]
            self._turn += 1
            if len(each.member.assignment) >= self._plan.commit_partitions:
                return each
        return None

    async def _replace_members(self, start_ns: int) -> None:
        async for _ in tick(self._share.churn, start_ns, lambda: self._end_ns, _POLL_S):
            self._start(self._replace_one())

    async def _replace_one(self) -> None:
        old = self._members.popleft()
        group = old.leave()
        closing = asyncio.create_task(old.member.close(timeout_ms=int(_LEAVE_S * 1000)))
        closing.add_done_callback(partial(_take_error, self._recorder))
        await self._join(group)

    async def _look_at_epochs(self) -> None:
        while True:
            for each in self._members:
                each.look()
            await asyncio.sleep(_POLL_S)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def make_client(plan: Plan) -> muster.Client:
    """A client with the security of the plan."""
    security = plan.security
    tls = None
    if security.tls:
        tls = muster.Tls(
            ca=security.ca or None,
            certificate=security.certificate or None,
            key=security.key or None,
        )
    credentials: muster.Basic | muster.Bearer | None = None
    if security.token_file:
        credentials = muster.Bearer(Path(security.token_file).read_text(encoding="ascii").strip())
    elif security.mechanism:
        credentials = muster.Basic(security.username, security.password)
    return muster.Client(plan.address, tls=tls, credentials=credentials)


def name_failure(error: BaseException) -> str:
    """What a failed call counts as among the errors."""
    match error:
        case muster.CommitFailed():
            return next((each.reason for each in error.failures.values() if each.reason), "FAILED")
        case muster.MusterError():
            return error.reason or type(error).__name__
        case TimeoutError():
            return "TIMED_OUT"
        case _:
            return "CONNECTION_LOST"


def _take_error(recorder: Recorder, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        recorder.count_error(name_failure(error))
