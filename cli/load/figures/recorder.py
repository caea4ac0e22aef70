"""Counts what the requests of one process took, within the measured part of the test."""

from __future__ import annotations

import time
from typing import Final

from cli.load.figures.figures import Figures
from cli.load.wire.messages import name_error
from cli.load.wire.request_schedule import RequestSchedule

_PARTS: Final = 10_000
"""Of what is not sent: one by one, millions of them would take longer than anybody waits."""


class Recorder:
    """Collects figures until they are taken; times are ns of ``time.monotonic_ns``.

    Errors, convergence and the requests of members count from the beginning, since members join
    before the measured part.
    """

    def __init__(self, *, is_held: bool) -> None:
        self._is_held = is_held
        self._figures = Figures()
        self._begin_ns = self._end_ns = 1 << 63
        self._cpu_s = time.process_time()
        self._busy_from_s: float | None = None

    def open(self, begin_ns: int, end_ns: int) -> None:
        """Measure requests intended within these times."""
        self._begin_ns, self._end_ns = begin_ns, end_ns

    def stop(self, now_ns: int) -> None:
        """Measure no later requests."""
        self._end_ns = min(self._end_ns, now_ns)

    def begin_busy(self) -> None:
        """The measured part begins: whether the process is at its limit counts from now on."""
        self._busy_from_s = time.process_time()

    def end_busy(self) -> None:
        """The measured part has ended."""
        if self._busy_from_s is not None:
            self._figures.busy_s += time.process_time() - self._busy_from_s
            self._busy_from_s = None

    def record(self, now_ns: int, intended_ns: int, sent_ns: int, code: int) -> None:
        """Count a request of the load that has been answered."""
        figures = self._figures
        figures.handled += 1
        if code:
            figures.errors[name_error(code)] += 1
        if not code and self._begin_ns <= now_ns < self._end_ns:
            # Also what was intended in the ramp: at its limit a server answers what is overdue.
            figures.answered += 1
        if intended_ns < self._begin_ns:
            return
        figures.service.add(now_ns - sent_ns)
        if self._is_held:
            figures.latency.add(now_ns - intended_ns)

    def record_unanswered(self, name: str, now_ns: int, intended_ns: int, times: int = 1) -> None:
        """Count a request of the load that got no answer until now: its latency is more."""
        self._figures.errors[name] += times
        if self._is_held and intended_ns >= self._begin_ns:
            self._figures.latency.add(now_ns - intended_ns, times)

    def record_not_sent(self, schedule: RequestSchedule, now_ns: int) -> None:
        """Count what is due at a held rate and is sent no more."""
        if schedule.is_held:
            for intended_ns, times in schedule.take_all(now_ns, _PARTS):
                self.record_unanswered("NOT_SENT", now_ns, intended_ns, times)

    def record_control(self, code: int) -> None:
        """Count a request of a member beside the load."""
        self._figures.handled += 1
        self._figures.controls += 1
        if code:
            self._figures.errors[name_error(code)] += 1

    def record_convergence(self, took_ns: int) -> None:
        """Count a join whose group is complete again."""
        self._figures.convergence.add(took_ns)

    def record_not_converged(self, joins: int) -> None:
        """Count joins whose groups are not complete; what they took is reported by those."""
        if joins:
            self._figures.errors["NOT_CONVERGED"] += joins

    def count_error(self, name: str) -> None:
        """Count an error that is no response."""
        self._figures.errors[name] += 1

    def take(self) -> Figures:
        """The figures since the last call."""
        taken, self._figures = self._figures, Figures()
        cpu_s = time.process_time()
        taken.cpu_s = cpu_s - self._cpu_s
        self._cpu_s = cpu_s
        if not self._is_held:
            # Without intended times there is nothing to correct.
            taken.latency.merge(taken.service)
        return taken
