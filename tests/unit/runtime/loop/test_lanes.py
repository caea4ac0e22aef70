"""The threads that work for the loop."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Event
from typing import Any

from coordinator.runtime.clock import Lane
from tests.support.waiting import until


class Large:
    """A large input or result: a target of many members, batches of the log."""


async def test_a_lane_keeps_nothing_of_what_it_has_done() -> None:
    """Bug: an idle lane kept its last work, result and callback alive."""
    loop = asyncio.get_running_loop()
    lane = Lane(loop, "muster-test")
    given, told = Large(), Large()
    left = [weakref.ref(given), weakref.ref(told)]
    done = loop.create_future()

    def tell(_: Large, result: object) -> None:
        assert isinstance(result, Large)
        left.append(weakref.ref(result))
        loop.call_soon(done.set_result, None)

    lane.put(partial(lambda _: Large(), given), partial(tell, told))
    del given, told
    await done
    # It drops them after it has told the loop.
    await until(lambda: not any(each() for each in left), "it keeps nothing")
    lane.close()


class Loop:
    """A loop whose timers the test fires."""

    def __init__(self) -> None:
        self.timers: list[Callable[[], None]] = []
        self.ready: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def call_later(self, _: float, callback: Callable[[], None]) -> None:
        self.timers.append(callback)

    def call_soon_threadsafe(self, callback: Callable[..., None], *args: Any) -> None:
        self.ready.put(partial(callback, *args))

    def fire(self) -> None:
        due, self.timers = self.timers, []
        for callback in due:
            callback()


def test_a_busy_loop_gives_way_for_as_long_as_work_is_out() -> None:
    """Bug: behind pipelined requests a finished sync waited 1.1 s for the interpreter lock."""
    loop, given = Loop(), []
    lane = Lane(loop, "muster-test", lambda: given.append(1))  # type: ignore[arg-type]
    may_end, told = [Event(), Event()], []
    for end in may_end:
        lane.put(end.wait, told.append)
    for _ in range(3):
        assert len(loop.timers) == 1
        loop.fire()
    assert len(given) == 3

    may_end[0].set()
    loop.ready.get()()
    loop.fire()
    assert (told, len(given)) == ([True], 4)

    may_end[1].set()
    loop.ready.get()()
    loop.fire()
    assert (told, len(given), loop.timers) == ([True, True], 4, [])

    lane.put(lambda: True, told.append)
    assert len(loop.timers) == 1
    loop.ready.get()()
    lane.close()
    assert len(told) == 3
