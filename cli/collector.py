"""The cyclic garbage collector of a server: out of the way of what lives long.

What a request makes dies by its reference counts; what stays, groups and members, is no garbage.
With Python's defaults a full collection walks over all members again and again while they join,
and stops the loop for as long as that takes.
"""

from __future__ import annotations

import gc

THRESHOLDS = (10_000, 2, 2_500)
"""A collection takes one to two microseconds for each object that it looks at and that lives on,
and the loop waits for it. While thousands of members join nearly all live on, so that the young
ones are looked at before they are many; all of them once in fifty million."""


def hold_collector() -> None:
    """Collect nothing while groups are loaded: what is loaded stays."""
    gc.collect()
    gc.disable()


def settle_collector() -> None:
    """Never look at what was loaded again, and seldom at the rest. Once, after loading."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
