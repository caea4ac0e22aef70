"""What counts among the figures of a process, and when."""

from __future__ import annotations

from cli.load.figures.recorder import Recorder

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
