"""The cyclic garbage collector of a server: out of the way of what lives long.

What a request makes dies by its reference counts; what stays, groups and members, is no garbage.
With Python's defaults a full collection walks over all members again and again while they join,
and stops the loop for as long as that takes. Without collections a cycle that was overlooked fills
the memory: gRPC itself leaves one with each call.

So all collections are of what is new. What was loaded is never looked at, and what has lived
through a collection of everything new is not looked at again, once there is much of it. A cycle
that was alive then stays for good; it takes very many at once to bring that about.
"""

from __future__ import annotations

import gc

THRESHOLDS = (5_000, 2, 0)
"""Objects before the youngest are looked at, and how often before those that lived through it."""

OLD_MAX = 20_000
"""So many objects that lived through a full collection are looked at by the next one, too.

A collection takes up to two microseconds for each object that it looks at, and the loop waits for
it; with these figures it looks at some 50,000 at most. Beside ten million objects that were loaded
the longest took 8 ms, also while half a million joined them, and while four million were left in
cycles by requests of which 700 waited at any time; all in one go took 9.8 s.
"""


def hold_collector() -> None:
    """Collect nothing while groups are loaded: what is loaded stays."""
    gc.collect()
    gc.disable()


def settle_collector() -> None:
    """Never look at what was loaded again, nor at what comes and stays. After loading."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    if _freeze_old not in gc.callbacks:
        gc.callbacks.append(_freeze_old)
    gc.enable()


def _freeze_old(phase: str, info: dict[str, int]) -> None:
    """After a full collection: what stays is left alone from now on, if it is much."""
    if phase == "stop" and info["generation"] == 2 and len(gc.get_objects(2)) > OLD_MAX:
        gc.freeze()
