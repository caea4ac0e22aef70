"""What counts among the figures of a process, and when."""

from __future__ import annotations

import time

import pytest

from cli.load.figures.figures import Figures
from cli.load.figures.recorder import Recorder
from cli.load.figures.view import compute_limit_note
from cli.load.wire.request_schedule import RequestSchedule

SECOND = 1_000_000_000


def test_the_rate_counts_what_is_answered_in_the_measured_time() -> None:
    """Behind its rate a server answers in the measured time what was due in the ramp."""
    recorder = Recorder(is_held=True)
    recorder.open(10 * SECOND, 20 * SECOND)
    for now_s, intended_s in ((9, 8), (11, 9), (12, 9), (15, 14), (21, 19)):
        recorder.record(now_s * SECOND, intended_s * SECOND, now_s * SECOND - 1, 0)
    figures = recorder.take()
    assert figures.answered == 3
    # Those from the ramp say nothing about the latency of the measured time.
    assert figures.latency.count == figures.service.count == 2


def test_very_many_requests_that_are_not_sent_are_counted_together() -> None:
    """Bug: one by one they took longer than the test waits for a process, which was killed."""
    recorder, schedule = Recorder(is_held=True), RequestSchedule(1e9, 2 * SECOND)
    schedule.start(0, 12 * SECOND)
    recorder.open(2 * SECOND, 12 * SECOND)
    assert schedule.take(SECOND) == 0
    recorder.record_not_sent(schedule, 20 * SECOND)
    figures = recorder.take()
    assert figures.errors == {"NOT_SENT": 11 * 1_000_000_000 - 1}
    assert figures.latency.count == pytest.approx(10e9, rel=0.001)
    # Intended from 2 s to 12 s: those in the middle are 13 s late at 20 s.
    assert figures.latency.quantile(0.5) == pytest.approx(13 * SECOND, rel=0.01)
    assert not schedule.is_due(20 * SECOND)


def test_a_few_requests_that_are_not_sent_are_counted_one_by_one() -> None:
    recorder, schedule = Recorder(is_held=True), RequestSchedule(10, 0)
    schedule.start(0, SECOND)
    recorder.open(0, SECOND)
    recorder.record_not_sent(schedule, 2 * SECOND)
    figures = recorder.take()
    assert figures.errors == {"NOT_SENT": 10}
    assert figures.latency.quantile(0.1) == pytest.approx(1.1 * SECOND, rel=0.01)
    assert figures.latency.quantile(1.0) == 2 * SECOND


def test_only_the_measured_part_says_whether_the_test_was_the_limit() -> None:
    """Bug: the CPU of a ramp of 30 s counted as if it had been used in 5 s that were measured."""
    recorder = Recorder(is_held=True)
    burn()
    recorder.begin_busy()
    recorder.end_busy()
    burn()
    recorder.end_busy()
    figures = recorder.take()
    assert figures.busy_s < figures.cpu_s / 10
    assert compute_limit_note(figures, figures.cpu_s, 1) is None
    recorder.begin_busy()
    burn()
    recorder.end_busy()
    figures = Figures.load(recorder.take().dump())
    assert figures.busy_s > figures.cpu_s * 0.9
    assert compute_limit_note(figures, figures.cpu_s, 1) is not None


def burn() -> None:
    """Use 20 ms of CPU."""
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass
