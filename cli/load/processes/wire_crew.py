"""One process of a load test on a Kafka listener: its connections, and the phases of the test."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import chain, islice, repeat
from time import monotonic_ns
from typing import Any, Final

from cli.load.figures.recorder import Recorder
from cli.load.members.member import Member
from cli.load.members.population import Population
from cli.load.options.plan import Plan, Share
from cli.load.processes.polling import poll_until, tick
from cli.load.wire.lane import Lane
from cli.load.wire.link import Dialer, RefusedError, name_failure
from cli.load.wire.messages import MalformedAnswer
from cli.load.wire.request_schedule import RequestSchedule
from cli.load.wire.timer import Alarm

_NS: Final = 1_000_000_000
_WAVE: Final = 500
"""Members of a process that join at a time, so that nobody waits for its turn for a session."""
_UPKEEP_S: Final = 0.01
_UPKEEP_NS: Final = 10_000_000
_UPKEEP: Final = "upkeep"
_LEAVE_S: Final = 5.0
_STOP_S: Final = 1.0
"""How long an interrupted test waits for answers."""

_BACKOFF_S: Final = (0.1, 0.2, 0.5, 1.0)
_FINEST_NS: Final = 100_000
"""Between two looks at what is due: a request may be sent that much late, which counts."""


class WireCrew:
    """Everything that one process does on a Kafka listener."""

    def __init__(self, plan: Plan, share: Share, recorder: Recorder) -> None:
        self.dialer = Dialer(plan.security, plan.timeout_s)
        self.partitions = plan.partitions
        self._plan = plan
        self._alarm: Alarm | None = None
        self._is_armed = False
        self._churn = share.churn
        self._schedule = RequestSchedule(share.rate, int(plan.ramp_s * _NS))
        self._recorder = recorder
        self._waiting: deque[Lane] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._end_ns = 1 << 63
        self._drain_s = plan.timeout_s
        self._is_over = False
        self._lanes = self._make_lanes(share)
        self._population = Population(plan, share, recorder, self._lanes, self)

    # ------------------------------------------------------------------ phases

    async def gather(self) -> None:
        """Connect, and let all members join. Raises ``TimeoutError`` and what ``open`` raises."""
        for lane in self._all_lanes():
            lane.attach((await self.dialer.open(lane.address)).transport)
        self._start(self._keep_up(), _UPKEEP)
        members = iter(list(self._population.members))
        while wave := list(islice(members, _WAVE)):
            self._population.join(wave)
            await poll_until(partial(_have_joined, wave), _UPKEEP_S)
        await poll_until(lambda: self._population.is_complete, _UPKEEP_S)

    def count_joined(self) -> int:
        """How many members have joined."""
        return self._population.count_joined()

    async def run(self, start_ns: int, end_ns: int) -> None:
        """Send the load from one time to another."""
        self._schedule.start(start_ns, end_ns)
        self._end_ns = end_ns
        lanes = self._all_lanes()
        for index, lane in enumerate(lanes):
            if not self._schedule.is_held:
                lane.starts_ns = start_ns + int(self._plan.ramp_s * _NS * index / len(lanes))
        alarm = self._alarm = Alarm(self._dispatch)
        alarm.set(start_ns)
        self._is_armed = True
        if self._churn:
            self._start(self._replace_members(start_ns))
        try:
            await poll_until(lambda: monotonic_ns() >= self._end_ns, _UPKEEP_S)
            await self._drain()
        finally:
            self._alarm = None
            alarm.close()

    def stop(self, now_ns: int) -> None:
        """End the load now."""
        self._schedule.stop(now_ns)
        self._end_ns = min(self._end_ns, now_ns)
        self._drain_s = min(self._drain_s, _STOP_S)

    async def leave(self) -> None:
        """Let all members leave, and close the connections."""
        for task in list(self._tasks):
            if task.get_name() != _UPKEEP:
                task.cancel()
        self._population.leave()
        deadline_ns = monotonic_ns() + int(min(self._plan.timeout_s, _LEAVE_S) * _NS)
        await poll_until(
            lambda: (
                self._population.have_left
                or monotonic_ns() >= deadline_ns
                or not any(lane.is_open for lane in self._all_lanes())
            ),
            _UPKEEP_S,
        )
        self._is_over = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for lane in self._all_lanes():
            lane.close()

    # ----------------------------------------------------------- what lanes and members report

    def record(self, now_ns: int, intended_ns: int, sent_ns: int, code: int) -> None:
        """A request of the load has been answered."""
        self._recorder.record(now_ns, intended_ns, sent_ns, code)

    def record_control(self, code: int) -> None:
        """A request of a member has been answered."""
        self._recorder.record_control(code)

    def wait_for_work(self, lane: Lane) -> None:
        """Give the lane a request when one is due."""
        lane.is_waiting = True
        self._waiting.append(lane)
        if self._alarm is not None and not self._is_armed:
            self._arm(monotonic_ns())

    def lose(self, lane: Lane, why: str) -> None:
        """Count what was in flight, and connect again."""
        now_ns = monotonic_ns()
        lost = list(lane.in_flight)
        lane.in_flight.clear()
        for call, intended_ns, _ in lost:
            if intended_ns >= 0:
                self._recorder.record_unanswered(why, now_ns, intended_ns)
            else:
                self._recorder.count_error(why)
                if not isinstance(call, Member):
                    lane.controls.append(call)
        if not self._is_over:
            note = partial(self._population.note_reconnected, lane)
            self._start(self._reconnect(lane, note, first_s=_BACKOFF_S[0]))

    def renew(self, lane: Lane, on_open: Callable[[], None]) -> None:
        """Replace the lane's connection by a new one, and then call ``on_open``."""
        lane.close()
        lane.in_flight.clear()
        self._start(self._reconnect(lane, on_open))

    def count_error(self, name: str) -> None:
        """Count an error."""
        self._recorder.count_error(name)

    def set_in_turn(self, member: Member, *, is_in_turn: bool) -> None:
        """Whether the member's requests are part of the load now."""
        self._population.set_in_turn(member, is_in_turn=is_in_turn)

    def start_task(self, member: Member, work: Coroutine[Any, Any, None]) -> None:
        """Run the work of a member."""
        del member
        self._start(work)

    # ------------------------------------------------------------------------------- its own

    def _all_lanes(self) -> list[Lane]:
        return [lane for lanes in self._lanes.values() for lane in lanes]

    def _make_lanes(self, share: Share) -> dict[str, list[Lane]]:
        """Connections to each coordinator of the groups, one at least, in proportion to members."""
        members = Counter[str]()
        for group in share.groups:
            members[group.address] += group.members or 1
        lanes: dict[str, list[Lane]] = {address: [] for address in members}
        for _ in range(share.connections):
            address = max(
                members,
                key=lambda each: (not lanes[each], members[each] / (len(lanes[each]) + 1)),
            )
            lanes[address].append(Lane(address, self._plan.in_flight, self._schedule, self))
        return lanes

    def _start(self, work: Coroutine[Any, Any, None], name: str | None = None) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _dispatch(self) -> None:
        """Give what is due to lanes that wait."""
        now_ns = monotonic_ns()
        waiting = self._waiting
        for _ in range(len(waiting)):
            if not self._schedule.is_due(now_ns):
                break
            lane = waiting.popleft()
            lane.is_waiting = False
            lane.fill()
        # Where no lane waits, the next answer frees one.
        self._is_armed = False
        if waiting:
            self._arm(now_ns)

    def _arm(self, now_ns: int) -> None:
        """Look again when the next request is intended."""
        if self._alarm is not None and now_ns < self._end_ns:
            self._is_armed = True
            soonest_ns = now_ns + (_FINEST_NS if self._schedule.is_held else _UPKEEP_NS)
            self._alarm.set(max(soonest_ns, self._schedule.next_ns))

    async def _keep_up(self) -> None:
        """Heartbeats of sessions, and connections that are silent for too long."""
        timeout_ns = int(self._plan.timeout_s * _NS)
        while True:
            now_ns = monotonic_ns()
            self._population.beat_due(now_ns)
            for lane in self._all_lanes():
                if lane.in_flight and now_ns - lane.in_flight[0][2] > timeout_ns:
                    lane.give_up("TIMED_OUT")
            await asyncio.sleep(_UPKEEP_S)

    async def _replace_members(self, start_ns: int) -> None:
        async for _ in tick(self._churn, start_ns, lambda: self._end_ns, _UPKEEP_S):
            self._population.churn()

    async def _reconnect(
        self, lane: Lane, on_open: Callable[[], None], first_s: float = 0.0
    ) -> None:
        delays = chain((first_s,), _BACKOFF_S, repeat(_BACKOFF_S[-1]))
        for delay_s in delays:
            await asyncio.sleep(delay_s)
            try:
                link = await self.dialer.open(lane.address)
            except (OSError, TimeoutError, RefusedError, MalformedAnswer) as error:
                self._recorder.count_error(name_failure(error))
                continue
            lane.attach(link.transport)
            on_open()
            return

    async def _drain(self) -> None:
        """Wait for answers and joins, and send what was due; what is left then is an error."""
        began_ns = monotonic_ns()
        await poll_until(
            lambda: monotonic_ns() >= began_ns + int(self._drain_s * _NS) or not self._count_open(),
            _UPKEEP_S,
        )
        self._recorder.record_not_sent(self._schedule, monotonic_ns())
        # What is in flight is answered in its time: members leave on connections that are open.
        stop_ns = monotonic_ns() + int(_STOP_S * _NS)
        await poll_until(
            lambda: monotonic_ns() >= stop_ns or not self._count_in_flight(), _UPKEEP_S
        )
        for lane in self._all_lanes():
            if any(intended_ns >= 0 for _, intended_ns, _ in lane.in_flight):
                lane.give_up("TIMED_OUT")
        joins = sum(group.give_up() for group in self._population.groups)
        self._recorder.record_not_converged(joins)

    def _count_open(self) -> int:
        """Requests of the load that are in flight, or due and not sent, and joins that last."""
        joins = sum(group.is_converging for group in self._population.groups)
        return self._count_in_flight() + joins + self._schedule.is_due(monotonic_ns())

    def _count_in_flight(self) -> int:
        return sum(
            1 for lane in self._all_lanes() for _, intended, _ in lane.in_flight if intended >= 0
        )


def _have_joined(members: Sequence[Member]) -> bool:
    return all(member.epoch for member in members)
