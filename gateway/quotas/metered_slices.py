"""The time slices of the work that one connection's requests begin, measured."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.runtime.loop.slices import Paced, RunsSlices


class MeteredSlices:
    """Notes the time of the slices of one connection's work."""

    def __init__(
        self, slices: RunsSlices, now: Callable[[], float], note: Callable[[float], None]
    ) -> None:
        self._slices = slices
        self._now = now
        self._note = note

    def run(
        self, steps: Paced[None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        self._slices.run(self._measure(steps), on_failure)

    def go_on(
        self, steps: Paced[None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        self._slices.go_on(self._measure(steps), on_failure)

    def _measure(self, steps: Paced[None]) -> Paced[None]:
        while True:
            began = self._now()
            try:
                pause = next(steps)
            except StopIteration:
                return
            finally:
                self._note(self._now() - began)
            yield pause
