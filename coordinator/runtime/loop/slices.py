"""The engine for work that would hold the loop for long: slices, between which the loop runs.

A piece of work is a generator that stops after each slice. Of all that wait one does a slice in a
turn, one after another, so that a turn takes no longer however many ask for much at the same time.
What takes less than a slice goes on in the same turn, for a few milliseconds of them all.

Work of the coordinator itself also says when it goes on: after a rest, or when a thread has done a
part of it. A walk that counts what its parts cost is put into slices by ``spend``.
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
"""When the next slice may be done: in a later turn, after so many milliseconds, or when what it is
given has been called."""

Paced: TypeAlias = Generator[Pause, None, T]
"""``Steps`` that say so after each slice."""

_Work: TypeAlias = tuple[Paced[None], Callable[[Exception], None] | None]
"""What is done, and who is told that it failed."""

TURN_MS: Final = 3
"""No slice is begun in a turn that has done slices for as long."""
PAUSE_MS: Final = 5
"""How long the walks of the coordinator rest between two slices."""
STALL_RETRY_MS: Final = 5
"""How long whoever has something to write waits for a store that stalls."""

log = structlog.get_logger()


class Slices:
    """The work that goes on. ``call_soon`` calls in a later turn of the loop.

    ``now_ms`` passes within a turn too.
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
        """Others, whose work waits for none of this, and none of this for it."""
        return Slices(self._call_soon, self._call_later_ms, self._now_ms)

    @property
    def is_busy(self) -> bool:
        """Whether there is work that goes on in a later turn."""
        return bool(self._waiting)

    def stop(self) -> None:
        """No slice is done any more, of what waits or rests or comes."""
        self._is_stopped = True
        self._waiting.clear()

    def run(
        self, steps: Paced[None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        """Do the first slice now, unless other work goes on, and the others in later turns.

        ``on_failure`` is told what ``steps`` raises, to answer whoever waits for it. Where nobody
        does it is raised: in the turn that did the slice.
        """
        self._go_on((steps, on_failure))

    def go_on(
        self, steps: Paced[None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        """Do the next slice in a later turn: the first is done already."""
        self._add((steps, on_failure))

    def _go_on(self, work: _Work) -> None:
        """Also for work that has rested."""
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
        """One slice, after what takes less than one."""
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
        """Do one slice; whether there are more."""
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
        elif callable(pause):
            pause(partial(self._go_on, work))
        else:
            self._call_later_ms(pause, partial(self._go_on, work))
        return True


def spend(walk: Iterator[int], budget: int) -> bool:
    """Go on with a walk that yields its costs, until they come to the budget; whether it has more.

    What else a slice needs, its caller does before.
    """
    for cost in walk:
        budget -= cost
        if budget <= 0:
            return True
    return False


class RunInLane(Protocol):
    """Runs ``work`` in a thread, as ``Scheduler.run_computing`` does."""

    def __call__(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None]
    ) -> None: ...


def compute_elsewhere(run: RunInLane, work: Callable[[], T]) -> Paced[T | BaseException]:
    """What ``work`` comes to in a thread, or what it raises there."""
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
        # The work of others goes on.
        log.exception("telling_of_failure_failed")
