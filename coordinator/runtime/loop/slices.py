"""Runs long work in time slices, between which the event loop runs.

A piece of work is a generator that yields after each slice. All waiting work shares one budget per
event-loop iteration: pieces that end within their first slice follow each other for a few
milliseconds, and at most one longer piece does a slice. An iteration thus takes no longer however
much work waits.

Work of the coordinator itself also says when to resume: after a pause, or when a thread has done
its part. ``spend`` splits a walk that yields the cost of its steps into slices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

import structlog

from coordinator.core.state.steps import Steps as Steps
from coordinator.core.state.steps import run_at_once as run_at_once

T = TypeVar("T")

Pause: TypeAlias = int | Callable[[Callable[[], None]], None] | None
"""When to do the next slice: in a later iteration (``None``), after this many milliseconds, or once
the work calls the callback it is given."""

Paced: TypeAlias = Generator[Pause, None, T]
"""``Steps`` that yield a ``Pause`` after each slice."""

_Work: TypeAlias = tuple[Paced[None], Callable[[Exception], None] | None]
"""The work, and the callback for its failure."""

TURN_MS: Final = 3
"""No slice starts in an iteration that has spent this long on slices."""
PAUSE_MS: Final = 5
"""The pause between two slices of the coordinator's own walks."""
STALL_RETRY_MS: Final = 5
"""How long a writer waits before it retries a store that stalls."""
REFUSED_RETRY_MS: Final = 1_000
"""How long the coordinator waits before it repeats a command of its own that was refused."""

log = structlog.get_logger()


class RunsSlices(Protocol):
    """What runs work in time slices: see ``Slices``."""

    def run(
        self, steps: Paced[None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        """Do the first slice now, unless other work is queued, and the rest in later iterations."""

    def go_on(
        self, steps: Paced[None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        """Do the next slice in a later iteration; the caller has done the first."""


class Slices:
    """The work in progress. ``call_soon`` calls in a later iteration of the loop.

    ``now_ms`` must advance within an iteration.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        call_later_ms: Callable[[int, Callable[[], None]], object],
        now_ms: Callable[[], float],
    ) -> None:
        self._call_soon = call_soon
        self._call_later_ms = call_later_ms
        self._now_ms = now_ms
        self._waiting: deque[_Work] = deque()
        self._is_turn_due = False
        self._is_stepping = False
        self._is_stopped = False

    def beside(self) -> Slices:
        """An independent queue of work: neither queue waits for the other."""
        return Slices(self._call_soon, self._call_later_ms, self._now_ms)

    @property
    def is_busy(self) -> bool:
        """Whether work is queued for a later iteration."""
        return bool(self._waiting)

    def stop(self) -> None:
        """Do no more slices, of queued, paused or new work."""
        self._is_stopped = True
        self._waiting.clear()

    def run(
        self, steps: Paced[None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        """Do the first slice now, unless other work is queued, and the rest in later iterations.

        ``on_failure`` gets the exception of ``steps``, to answer its caller. Without it the
        exception is raised in the iteration that ran the slice.
        """
        self._go_on((steps, on_failure))

    def go_on(
        self, steps: Paced[None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        """Do the next slice in a later iteration; the caller has done the first."""
        self._add((steps, on_failure))

    def _go_on(self, work: _Work) -> None:
        """``run``, also used for work that has paused."""
        if self._waiting or self._is_stepping or self._is_stopped:
            self._add(work)
        else:
            self._step(work)

    def _add(self, work: _Work) -> None:
        if self._is_stopped:
            return
        self._waiting.append(work)
        if not self._is_turn_due:
            self._is_turn_due = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        """Do one slice of long work, after work that ends within a slice."""
        until = self._now_ms() + TURN_MS
        goes_on = False
        try:
            while self._waiting and not goes_on and self._now_ms() < until:
                goes_on = self._step(self._waiting.popleft())
        finally:
            self._is_turn_due = bool(self._waiting)
            if self._is_turn_due:
                self._call_soon(self._turn)

    def _step(self, work: _Work) -> bool:
        """Do one slice; returns whether the work is queued for another. Work that rests is not."""
        steps, on_failure = work
        self._is_stepping = True
        try:
            pause = next(steps)
        except StopIteration:
            return False
        except Exception as bug:
            if on_failure is None:
                raise
            log.exception("slice_failed")
            _tell(on_failure, bug)
            return False
        finally:
            self._is_stepping = False
        if not pause:
            self._add(work)
            return True
        if callable(pause):
            pause(partial(self._go_on, work))
        else:
            self._call_later_ms(pause, partial(self._go_on, work))
        return False


def spend(walk: Iterator[int], budget: int) -> bool:
    """Advance a walk that yields costs until they reach the budget; whether it has more.

    The caller prepares whatever the slice needs.
    """
    for cost in walk:
        budget -= cost
        if budget <= 0:
            return True
    return False


class RunInLane(Protocol):
    """Runs ``work`` on a thread, as ``Scheduler.run_computing`` does."""

    def __call__(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None: ...


def compute_elsewhere(run: RunInLane, work: Callable[[], T]) -> Paced[T | BaseException]:
    """The result of ``work`` on a thread, or the exception it raises there."""
    found: list[T | BaseException] = []

    def begin(go_on: Callable[[], None]) -> None:
        def done(result: T | BaseException) -> None:
            found.append(result)
            go_on()

        run(work, done)

    yield begin
    return found.pop()


def _tell(on_failure: Callable[[Exception], None], bug: Exception) -> None:
    try:
        on_failure(bug)
    except Exception:
        # Other work must go on.
        log.exception("telling_of_failure_failed")
