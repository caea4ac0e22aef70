"""An asyncio event loop on virtual time: one thread, no I/O, and several machines on it.

Every handle belongs to the machine whose code made it, by a context variable that tasks and timers
inherit. A machine that stands still takes its turns later, in their order; a dead one takes none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from heapq import heappop
from typing import Any, Protocol

from tests.sim.checkers.violations import Violation

_TURNS_MAX = 20_000
_START_S = 1_000.0
_TICK_S = 1e-7
_UNWIND_ROUNDS = 50
_UNWIND_S = 0.5


class Machine:
    """One process with a clock of its own: its rate and its start are not those of others."""

    def __init__(self, name: str, *, rate: float = 1.0, offset_s: float = 0.0) -> None:
        self.name = name
        self.is_dead = False
        self.stalls = 0
        self.deferred: list[asyncio.Handle] = []
        self._rate = rate
        self._offset_s = offset_s
        self.context = copy_context()
        self.context.run(_CURRENT.set, self)

    def read_clock(self, now_s: float) -> float:
        """What this machine's clock says."""
        return now_s * self._rate + self._offset_s


_CURRENT: ContextVar[Machine | None] = ContextVar("machine", default=None)


def current_machine() -> Machine:
    """The machine whose code is running."""
    machine = _CURRENT.get()
    assert machine is not None, "no machine runs this"
    return machine


class _Selector:
    """What ``BaseEventLoop`` asks for file events: there are none."""

    def select(self, timeout: float | None) -> list[Any]:
        raise AssertionError("the virtual loop runs its own turns")

    def close(self) -> None:
        pass


class _Handle(Protocol):
    """What the loop needs of asyncio's handles."""

    _context: Context
    _callback: Callable[..., object] | None
    _args: tuple[Any, ...]
    _when: float
    _scheduled: bool

    def cancelled(self) -> bool: ...


class VirtualLoop(asyncio.BaseEventLoop):
    """Time passes where nothing is ready, to the next timer. ``after_turn`` looks at each turn."""

    _ready: Any
    _scheduled: Any

    def __init__(self, executor_s: Callable[[], float]) -> None:
        super().__init__()
        self._selector = _Selector()
        self._clock_resolution = 1e-9
        self._now_s = _START_S
        self._executor_s = executor_s
        self._turns_at_once = 0
        self.turns = 0
        self.is_unwinding = False
        self.failure: BaseException | None = None
        self.set_exception_handler(self._on_exception)

    def time(self) -> float:
        return self._now_s

    @property
    def passed_s(self) -> float:
        """Virtual time since the loop was made."""
        return self._now_s - _START_S

    def fail(self, failure: BaseException) -> None:
        """The seed ends with this; the first counts."""
        if self.failure is None:
            self.failure = failure

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        exception = context.get("exception")
        if not self.is_unwinding:
            what = f"{context.get('message')}: {exception!r}"
            failure = Violation("unhandled", what)
            failure.__cause__ = exception
            self.fail(failure)

    # ------------------------------------------------------------------------------ the seams

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Work of another thread takes a while, and is done at its end."""
        future = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:  # noqa: BLE001 - handed on as an executor does
                future.set_exception(error)

        self.call_later(self._executor_s(), work)
        return future

    # -------------------------------------------------------------------------------- machines

    def stall(self, machine: Machine, duration_s: float) -> None:
        """The machine stands still; its clock goes on, and what comes waits."""
        machine.stalls += 1

        def resume() -> None:
            machine.stalls -= 1
            if not machine.stalls and not machine.is_dead:
                self._ready.extend(machine.deferred)
                machine.deferred.clear()

        self.call_later(duration_s, resume, context=Context())

    # --------------------------------------------------------------------------------- turns

    def _run_once(self) -> None:
        """As asyncio's, without files; what a callback raises ends the seed."""
        ready, scheduled = self._ready, self._scheduled
        if not ready:
            self._pass_time()
        else:
            self._turns_at_once += 1
            if self._turns_at_once > _TURNS_MAX:
                raise Violation("L2", "turns follow each other and no time passes")
        end = self._now_s + self._clock_resolution
        while scheduled and scheduled[0]._when < end:
            timer = heappop(scheduled)
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle: _Handle = ready.popleft()
            if handle.cancelled():
                continue
            self._run_handle(handle)
            if self.failure is not None and not self.is_unwinding:
                raise self.failure
        self.turns += 1

    def _pass_time(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0].cancelled():
            heappop(scheduled)._scheduled = False
        if not scheduled:
            raise Violation("L2", "everybody waits, and nothing is to come")
        # Code takes time too: a timer that finds itself too early by a rounding error is not now.
        self._now_s = max(scheduled[0]._when, self._now_s + _TICK_S)
        self._turns_at_once = 0

    def _run_handle(self, handle: _Handle) -> None:
        machine = handle._context.get(_CURRENT)
        if machine is not None and (machine.is_dead or machine.stalls):
            # Of the dead it is kept too: their tasks are ended when the seed is over.
            machine.deferred.append(handle)  # type: ignore[arg-type]
            return
        callback = handle._callback
        assert callback is not None
        try:
            handle._context.run(callback, *handle._args)
        except (Violation, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if not self.is_unwinding:
                raise Violation("unhandled", f"a callback raised {error!r}") from error

    def run_for(self, duration_s: float) -> None:
        """All turns of the next so many seconds."""
        end_s = self._now_s + duration_s
        self.call_at(end_s, lambda: None, context=Context())
        self._begin()
        try:
            while self._now_s < end_s:
                self._run_once()
        finally:
            self._end()

    def run_while(self, condition: Callable[[], bool]) -> None:
        """Turns until it does not hold any more."""
        self._begin()
        try:
            while condition():
                self._run_once()
        finally:
            self._end()

    def _begin(self) -> None:
        self._check_closed()  # type: ignore[attr-defined]
        asyncio._set_running_loop(self)

    @staticmethod
    def _end() -> None:
        asyncio._set_running_loop(None)

    def unwind(self, machines: list[Machine]) -> None:
        """Ends all tasks, also those of the dead, so that nothing is left of the seed."""
        self.is_unwinding = True
        for machine in machines:
            machine.is_dead, machine.stalls = False, 0
            deferred, machine.deferred = machine.deferred, []
            self._ready.extend(deferred)
        for _ in range(_UNWIND_ROUNDS):
            left = [task for task in asyncio.all_tasks(self) if not task.done()]
            if not left:
                break
            for task in left:
                task.cancel()
            with suppress(Exception, Violation):
                self.run_for(_UNWIND_S)
        self._ready.clear()
        self._scheduled.clear()
        self.close()
