"""Work that would hold the loop for long, done in slices between which the loop runs.

A piece of work is a generator that stops after each slice. Of all that wait one does a slice in a
turn, one after another, so that a turn takes no longer however many ask for much at the same time.
What takes less than a slice goes on in the same turn, for a few milliseconds of them all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

import structlog

from coordinator.core.state.steps import Steps as Steps
from coordinator.core.state.steps import run_at_once as run_at_once

_Work: TypeAlias = tuple[Steps[None], Callable[[Exception], None]]
"""What is done, and who is told that it failed."""

TURN_MS: Final = 3
"""No slice is begun in a turn that has done slices for as long."""

log = structlog.get_logger()


class Slices:
    """The work that goes on. ``call_soon`` calls in a later turn of the loop.

    ``now_ms`` passes within a turn too.
    """

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], object], now_ms: Callable[[], float]
    ) -> None:
        self._call_soon = call_soon
        self._now_ms = now_ms
        self._waiting: deque[_Work] = deque()
        self._is_stepping = False

    def beside(self) -> Slices:
        """Others, whose work waits for none of this, and none of this for it."""
        return Slices(self._call_soon, self._now_ms)

    @property
    def is_busy(self) -> bool:
        """Whether there is work that goes on in a later turn."""
        return bool(self._waiting)

    def run(self, steps: Steps[None], on_failure: Callable[[Exception], None]) -> None:
        """Do the first slice now, unless other work goes on, and the others in later turns.

        ``on_failure`` is told what ``steps`` raises, to answer whoever waits for it.
        """
        work = steps, on_failure
        if self._waiting or self._is_stepping or self._step(work):
            self._add(work)

    def go_on(self, steps: Steps[None], on_failure: Callable[[Exception], None]) -> None:
        """Do the next slice in a later turn: the first is done already."""
        self._add((steps, on_failure))

    def _add(self, work: _Work) -> None:
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self._call_soon(self._turn)

    def _turn(self) -> None:
        """One slice, after what takes less than one."""
        until = self._now_ms() + TURN_MS
        goes_on = False
        while self._waiting and not goes_on and self._now_ms() < until:
            work = self._waiting[0]
            goes_on = self._step(work)
            self._waiting.popleft()
            if goes_on:
                self._waiting.append(work)
        if self._waiting:
            self._call_soon(self._turn)

    def _step(self, work: _Work) -> bool:
        """Do one slice; whether there are more."""
        steps, on_failure = work
        self._is_stepping = True
        try:
            next(steps)
        except StopIteration:
            return False
        except Exception as bug:
            log.exception("slice_failed")
            _tell(on_failure, bug)
            return False
        finally:
            self._is_stepping = False
        return True


def _tell(on_failure: Callable[[Exception], None], bug: Exception) -> None:
    try:
        on_failure(bug)
    except Exception:
        # The work of others goes on.
        log.exception("telling_of_failure_failed")
