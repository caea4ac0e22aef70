"""The threads that work for the loop."""

from __future__ import annotations

import asyncio
import weakref
from functools import partial

from coordinator.runtime.clock import Lane


class Large:
    """What work was given, and what it came to: a target of many members, batches of the log."""


async def test_a_lane_keeps_nothing_of_what_it_has_done() -> None:
    """Bug: until the next work came it held the last one, its result and whom to tell."""
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
    for _ in range(1_000):
        if not any(each() for each in left):
            break
        await asyncio.sleep(0.005)
    kept = [each() for each in left]
    lane.close()
    assert kept == [None, None, None]
