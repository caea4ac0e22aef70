"""A coordinator whose answers the test sets, and a clock that the test advances."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any

from model.commands.consumer import ConsumerGroupHeartbeat
from model.configs.coordinator_settings import CoordinatorSettings
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.topics import TopicImage


class VirtualClock:
    """Seconds that pass only in ``advance``, which makes the calls that fall due on the way.

    ``pass_by`` lets them pass as a long turn does, in which nobody is called.
    """

    def __init__(self) -> None:
        self._now = 1_000.0
        self._order = count()
        self._calls: list[tuple[float, int, VirtualTimer]] = []

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[[], object]) -> VirtualTimer:
        timer = VirtualTimer(callback)
        heapq.heappush(self._calls, (self._now + delay, next(self._order), timer))
        return timer

    def pass_by(self, seconds: float) -> None:
        self._now += seconds

    def turn(self) -> bool:
        """Run the calls due now, but none that they schedule; whether there were any."""
        due = [call for call in self._calls if call[0] <= self._now]
        for call in sorted(due, key=lambda call: call[:2]):
            self._calls.remove(call)
            call[2].fire()
        heapq.heapify(self._calls)
        return bool(due)

    def advance(self, seconds: float) -> None:
        until = self._now + seconds
        while self._calls and self._calls[0][0] <= until:
            due, _, timer = heapq.heappop(self._calls)
            self._now = max(self._now, due)
            timer.fire()
        self._now = until


class VirtualTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self._callback = None

    def fire(self) -> None:
        if self._callback is not None:
            self._callback()


class FakeTicket:
    def __init__(self) -> None:
        self.is_alive = True
        self.touched: list[int] = []

    def touch(self, monotonic_ms: int) -> bool:
        if self.is_alive:
            self.touched.append(monotonic_ms)
        return self.is_alive

    def is_valid(self) -> bool:
        return self.is_alive


class FakeWatch:
    def __init__(self, on_change: Callable[[], None], on_dropped: Callable[[], None]) -> None:
        self.on_change = on_change
        self.on_dropped = on_dropped
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeCoordinator:
    """Answers heartbeats at once with ``answer``, or holds them where ``held`` is a list."""

    def __init__(self) -> None:
        self.settings = CoordinatorSettings()
        self.cluster_id = "fake"
        self.log_partitions = 50
        self.image = TopicImage()
        self.commands: list[Any] = []
        self.held: list[Callable[[Any], None]] | None = None
        self.tickets: list[FakeTicket] = []
        self.watches: list[FakeWatch] = []
        self.has_pending_change = False
        self.members: set[tuple[str, str]] = set()
        self.answer: Callable[[Any], Any] = quiet

    def submit(self, command: Any, reply: Callable[[Any], None]) -> None:
        self.commands.append(command)
        if self.held is None:
            reply(self.answer(command))
        else:
            self.held.append(reply)

    def ticket(self, group_id: str, member_id: str) -> FakeTicket:
        self.tickets.append(FakeTicket())
        return self.tickets[-1]

    def watch(
        self,
        group_id: str,
        member_id: str,
        on_change: Callable[[], None],
        speaker: int = 0,
        on_dropped: Callable[[], None] = lambda: None,
    ) -> FakeWatch:
        self.watches.append(FakeWatch(on_change, on_dropped))
        if self.has_pending_change:
            on_change()
        return self.watches[-1]

    def holds_member(self, group_id: str, member_id: str) -> bool:
        return (group_id, member_id) in self.members

    def holds_group(self, group_id: str) -> bool:
        return any(group_id == each for each, _ in self.members)

    def find_subscribed_names(self, group_id: str, member_id: str) -> tuple[str, ...]:
        return ()

    def ready(self) -> bool:
        return True

    def is_serving(self) -> bool:
        return True

    def drop_watches(self) -> None:
        """Let the members send a request on another connection."""
        for watch in self.watches:
            if not watch.is_cancelled:
                watch.is_cancelled = True
                watch.on_dropped()

    def send_change(self) -> None:
        """Change the group: invalidate tickets, and call the watch of the parked member."""
        for ticket in self.tickets:
            ticket.is_alive = False
        for watch in self.watches:
            if not watch.is_cancelled:
                watch.is_cancelled = True
                watch.on_change()


def quiet(command: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeatResponse:
    """An answer without a change."""
    return answer_of(command)


def answer_of(command: ConsumerGroupHeartbeat, **changes: Any) -> ConsumerGroupHeartbeatResponse:
    values: dict[str, Any] = {
        "member_id": command.member_id,
        "member_epoch": command.member_epoch,
        "heartbeat_interval_ms": 5_000,
        "assignment": None,
        "has_changes": False,
        "parkable": True,
        "settled": True,
    }
    return ConsumerGroupHeartbeatResponse(**(values | changes))
