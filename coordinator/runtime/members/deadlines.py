"""Carries out effects that start and cancel deadlines, and notes heartbeats."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.state.outcome import (
    ArmClassicDeadline,
    ArmLeaveGrace,
    ArmRebalanceTimeout,
    BeginClassicSessions,
    CancelClassicDeadline,
    CancelRebalanceTimeout,
    RenewClassicSessions,
)
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.members.timers import Timers
from model.ids import GroupId, MemberId

DeadlineEffect: TypeAlias = (
    ArmRebalanceTimeout
    | ArmLeaveGrace
    | CancelRebalanceTimeout
    | ArmClassicDeadline
    | BeginClassicSessions
    | RenewClassicSessions
    | CancelClassicDeadline
)


class Deadlines:
    """Records deadlines in ``Liveness`` and arms the timer for them."""

    def __init__(self, liveness: Liveness, timers: Timers, clock: SteadyClock) -> None:
        self._liveness = liveness
        self._timers = timers
        self._clock = clock

    def heard(self, group_id: GroupId, member_id: MemberId) -> None:
        """Note a heartbeat of a consumer-group member."""
        now_ms = self._clock.monotonic_ms()
        entry = self._liveness.get(group_id, member_id)
        if entry is not None:
            self._liveness.touch(entry, now_ms)
        else:
            self._liveness.heard(group_id, member_id, now_ms)
            self._timers.arm()

    def arm_classic(self, effect: ArmClassicDeadline, now_ms: int) -> None:
        """Start or move a deadline of a classic group."""
        group_id, deadline, member_id = effect.group_id, effect.deadline, effect.member_id
        if effect.stays and self._liveness.classic.is_armed(group_id, deadline, member_id):
            return
        self._liveness.arm_classic(group_id, deadline, member_id, effect.timeout_ms, now_ms)
        self._timers.arm()

    def renew(self, session: ArmClassicDeadline) -> None:
        """Fast path of ``carry_out`` for the sessions of members that commit."""
        self.arm_classic(session, self._clock.monotonic_ms())

    def carry_out(self, effect: DeadlineEffect) -> None:
        """Start or cancel a deadline."""
        now_ms = self._clock.monotonic_ms()
        match effect:
            case ArmRebalanceTimeout(group_id, member_id, epoch, timeout_ms):
                self._liveness.arm_rebalance(group_id, member_id, epoch, timeout_ms, now_ms)
                self._timers.arm()
            case ArmLeaveGrace(group_id, member_id, timeout_ms, silent_ms):
                self._liveness.reserve(group_id, member_id, timeout_ms, now_ms, silent_ms)
                self._timers.arm()
            case CancelRebalanceTimeout(group_id, member_id):
                self._liveness.cancel_rebalance(group_id, member_id)
            case ArmClassicDeadline():
                self.arm_classic(effect, now_ms)
            case BeginClassicSessions(group_id, sessions):
                self._liveness.begin_classic_sessions(group_id, sessions, now_ms)
                self._timers.arm()
            case RenewClassicSessions(group_id, sessions):
                self._liveness.renew_classic_sessions(group_id, sessions, now_ms)
                self._timers.arm()
            case CancelClassicDeadline(group_id, deadline, member_id):
                self._liveness.classic.cancel(group_id, deadline, member_id)
            case _:
                assert_never(effect)
