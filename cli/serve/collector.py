"""Configures Python's cyclic garbage collector for objects that live long.

Reference counting frees what requests allocate; groups and members are not garbage. With Python's
defaults a full collection traverses all members again and again while they join, and blocks the
event loop meanwhile. Without any collection an overlooked cycle fills the memory: gRPC leaves one
with each call.

So only new objects are collected. Loaded objects are frozen, and so are the survivors of a full
collection when they have become many. A cycle that was still alive when it was frozen is never
freed; that takes very many live cycles at once.

Collections are made while the event loop has nothing to do, so that few fall into the handling of
a change. The thresholds are for a loop that is never idle.
"""

from __future__ import annotations

import gc
import time

from coordinator.runtime.loop.stats import Histogram

THRESHOLDS = (5_000, 2, 0)
"""Allocations before generation 0 is collected, and collections of 0 before 1 is collected."""

OLD_MAX = 20_000
"""Survivors of a full collection that the next full collection still traverses.

A collection takes up to two microseconds for each object, and the event loop waits for it; with
these values it traverses at most about 50,000. With ten million loaded objects the longest one took
8 ms, also while half a million were added, and while requests (700 in flight) left four million in
cycles; a single collection of everything took 9.8 s.
"""

YOUNG_MIN = 500
"""Allocations that are worth a collection in an idle turn."""
FULL_EVERY = 4
"""How many collections of generation 1 in idle turns come before a full one."""


class GarbageCollector:
    """Decides when garbage is collected, and measures how long it takes; one per process."""

    def __init__(self) -> None:
        self.pauses = Histogram()
        """The time of each collection in seconds; nothing else runs meanwhile."""
        self._began = 0.0

    def hold(self) -> None:
        """Disable collection while groups are loaded: what is loaded stays."""
        gc.collect()
        gc.disable()

    def settle(self) -> None:
        """After loading: freeze what was loaded, and collect only new objects from now on."""
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        if self._note not in gc.callbacks:
            gc.callbacks.append(self._note)
        gc.enable()

    def stop(self) -> None:
        """Measure no longer."""
        if self._note in gc.callbacks:
            gc.callbacks.remove(self._note)

    def collect_idle(self) -> None:
        """Collect now what would soon be collected while requests wait."""
        if not gc.isenabled():
            return
        young, of_young, of_middle = gc.get_count()
        if of_middle >= FULL_EVERY:
            gc.collect(2)
        elif of_young or young >= YOUNG_MIN:
            gc.collect(1)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        """Measure a collection; after a full one, freeze the survivors if they are many."""
        if phase == "start":
            self._began = time.perf_counter()
            return
        if info["generation"] == 2 and len(gc.get_objects(2)) > OLD_MAX:
            gc.freeze()
        self.pauses.add(time.perf_counter() - self._began)
