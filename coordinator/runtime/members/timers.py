"""Fires members' deadlines on the loop: one timer, armed for the earliest.

A deadline fires only after everything that arrived before it is handled: a tick first lets the loop
read its sockets once, then checks; the expiries queue behind the commands that have arrived. If the
process stalled and a tick is late, deadlines move (``core/deadlines/liveness.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import structlog

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.deadlines.stalls import NEVER_MS
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.clock import Cancellable, Scheduler, SteadyClock
from coordinator.runtime.loop.stats import Stats
from model.commands.classic import ExpireClassicDeadline
from model.commands.consumer import ExpireMember
from model.errors import GroupError, LogPartitionStopped
from model.ids import GroupId

log = structlog.get_logger()

Expiry: TypeAlias = ExpireMember | ExpireClassicDeadline

SETTLE_MS = 1
HOLD_MS = 1_000


class Timers:
    """Calls ``expire`` for each deadline that has passed, unless ``is_held``.

    A refused expiry is retried. Groups that ``is_stopped`` says have no deadlines any more.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        clock: SteadyClock,
        stats: Stats,
        liveness: Liveness,
        *,
        expire: Callable[[Expiry, Reply], None],
        is_held: Callable[[], bool],
        is_stopped: Callable[[GroupId], bool],
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._stats = stats
        self._liveness = liveness
        self._expire = expire
        self._is_held = is_held
        self._is_group_stopped = is_stopped
        self._timer: Cancellable | None = None
        self._at_ms = 0
        self._is_stopped = False

    def arm(self) -> None:
        """Re-arm the timer if a deadline is earlier than its current one."""
        deadline_ms = self._liveness.next_deadline_ms()
        if deadline_ms is None or self._is_stopped:
            return
        if self._timer is not None:
            if self._at_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._set(deadline_ms - self._clock.monotonic_ms())

    def stop(self) -> None:
        """Stop firing deadlines."""
        self._is_stopped = True
        self._liveness.stalls.expect(NEVER_MS)
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, delay_ms: int) -> None:
        delay_ms = max(delay_ms, 0)
        self._at_ms = self._clock.monotonic_ms() + delay_ms
        self._liveness.stalls.expect(self._at_ms)
        self._timer = self._scheduler.call_later_ms(delay_ms, self._tick)

    def _tick(self) -> None:
        self._catch_up()
        self._settle(self._look)

    def _settle(self, then: Callable[[], None]) -> None:
        """Let the loop read its sockets once."""
        self._at_ms = self._clock.monotonic_ms() + SETTLE_MS
        self._liveness.stalls.expect(self._at_ms)
        self._timer = self._scheduler.call_later_ms(SETTLE_MS, then)

    def _catch_up(self) -> bool:
        late_ms = self._liveness.stalls.catch_up(self._clock.monotonic_ms())
        self._stats.stalled_ms = self._liveness.stalls.stalled_ms
        return late_ms > 0

    def _look(self) -> None:
        if self._catch_up():
            # The process stalled after all: what arrived meanwhile is still to be read. Do this
            # once only: if every iteration is late, nothing would ever expire.
            self._settle(self._look_after_all)
            return
        self._look_after_all()

    def _look_after_all(self) -> None:
        self._catch_up()
        self._liveness.stalls.expect(NEVER_MS)
        self._timer = None
        if self._is_stopped:
            return
        if self._is_held():
            self._set(HOLD_MS)
            return
        now_ms = self._clock.monotonic_ms()
        for command in self._liveness.due(now_ms):
            if self._is_group_stopped(command.group_id) or self._liveness.is_armed_anew(command):
                continue
            self._note(command)
            try:
                self._expire(command, partial(self._expired, command))
            except Exception:
                # The other deadlines must still fire, and the timer must run on.
                log.exception("expiring_failed", group_id=command.group_id)
                self._liveness.expire_again(command, now_ms)
        self.arm()

    def _note(self, command: Expiry) -> None:
        if not command.member_id:
            # A group's rebalance phase, which may end this way normally.
            return
        name = command.deadline.name.lower()
        counts = self._stats.members_expired
        counts[name] = counts.get(name, 0) + 1
        log.info(
            "member_expired",
            group_id=command.group_id,
            member_id=command.member_id,
            cause=command.deadline.value,
        )

    def _expired(self, command: Expiry, answer: Answer) -> None:
        if isinstance(answer, GroupError) and not isinstance(answer, LogPartitionStopped):
            self._liveness.expire_again(command, self._clock.monotonic_ms())
            self.arm()
        else:
            self._liveness.note_expired(command)
