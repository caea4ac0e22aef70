"""What requests leave behind where no cyclic collector runs: garbage in cycles, and what stays."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from types import FunctionType, MethodType
from typing import Any

from cli.serve.event_loop import find_loop_factory

WARM_UP = 32
"""Runs before those that count: modules, codecs and caches are filled by then."""

_ARE_KEPT = ("living: PartitionAppend", "living: MemberLiveness", "living: _Bucket")
"""The log of a store in memory; deadlines of members, and their buckets, one for each 100 ms in
which a member was heard from. Both stay until they would be due."""


async def count_left(
    ask: Callable[[int], Awaitable[None]], times: int, *, of: tuple[str, ...] = ()
) -> Counter[str]:
    """What ``ask(times)`` leaves that does not die by its reference counts, and what lives on.

    Counted by type: objects in cycles that nothing refers to (``garbage: X``), and how many more
    objects there are (``living: X``), where those are a tenth of ``times`` or more; where ``of``
    names packages, only what is theirs.
    """
    await ask(WARM_UP)
    gc.collect()
    # What is there already is neither walked nor counted, which would take most of the time.
    gc.freeze()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        before = _count_living()
        await ask(times)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        garbage = Counter(_name(thing) for thing in gc.garbage if _is_of(thing, of))
        gc.set_debug(0)
        gc.garbage.clear()
        gc.collect()
        living = _count_living()
    finally:
        gc.set_debug(0)
        gc.unfreeze()
        if was_enabled:
            gc.enable()
    living.subtract(before)
    if of:
        living.clear()
    found = Counter({f"garbage: {name}": count for name, count in garbage.items()})
    found.update({f"living: {name}": count for name, count in living.items()})
    return Counter(
        {
            name: count
            for name, count in found.items()
            if count * 10 >= times and name not in _ARE_KEPT
        }
    )


def _name(thing: object) -> str:
    if isinstance(thing, FunctionType | MethodType):
        return thing.__qualname__
    return type(thing).__qualname__


def _is_of(thing: object, packages: tuple[str, ...]) -> bool:
    """Whether its type, or a function itself, is of one of the packages; of none is of any.

    A bound method is not: what it is bound to is there by itself.
    """
    named = thing if isinstance(thing, FunctionType) else type(thing)
    return not packages or (named.__module__ or "").split(".")[0] in packages


def _count_living() -> Counter[str]:
    return Counter(map(_name, gc.get_objects()))


def run_as_served(main: Coroutine[Any, Any, None]) -> None:
    """Run on the loop that a server has: its timers and transports are not asyncio's."""
    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(main)
