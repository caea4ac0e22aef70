"""Configures Python's cyclic garbage collector for objects that live long.

Reference counting frees what requests allocate; groups and members are not garbage. With Python's
defaults a full collection traverses all members again and again while they join, and blocks the
event loop meanwhile. Without any collection an overlooked cycle fills the memory: gRPC leaves one
with each call.

So only new objects are collected. Loaded objects are frozen, and so are the survivors of a full
collection when they have become many. A cycle that was still alive when it was frozen is never
freed; that takes very many live cycles at once.
"""

from __future__ import annotations

import gc

THRESHOLDS = (5_000, 2, 0)
"""Allocations before generation 0 is collected, and collections of 0 before 1 is collected."""

OLD_MAX = 20_000
"""Survivors of a full collection that the next full collection still traverses.

A collection takes up to two microseconds for each object, and the event loop waits for it; with
these values it traverses at most about 50,000. With ten million loaded objects the longest one took
8 ms, also while half a million were added, and while requests (700 in flight) left four million in
cycles; a single collection of everything took 9.8 s.
"""


def hold_collector() -> None:
    """Disable collection while groups are loaded: what is loaded stays."""
    gc.collect()
    gc.disable()


def settle_collector() -> None:
    """After loading: freeze what was loaded, and collect only new objects from now on."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    if _freeze_old not in gc.callbacks:
        gc.callbacks.append(_freeze_old)
    gc.enable()


def _freeze_old(phase: str, info: dict[str, int]) -> None:
    """After a full collection, freeze the survivors if they are many."""
    if phase == "stop" and info["generation"] == 2 and len(gc.get_objects(2)) > OLD_MAX:
        gc.freeze()
