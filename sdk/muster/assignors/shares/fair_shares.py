"""The fair load of each member: its load if partitions could be split arbitrarily."""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import Floats
from muster.assignors.shares.member_shares import ShareGraph

_MAX_SWEEPS = 32
_CLOSE = 1e-3


def compute_fair_loads(graph: ShareGraph, weight: Floats, fixed: Floats) -> Floats:
    """Per member, its load when the weight of each bundle is spread as evenly as possible.

    `weight` is per bundle, `fixed` is each member's other load. Any two members that share a bundle
    and both have some of it have the same load. With overlapping bundles this is approximated by
    sweeps over all bundles until little changes.
    """
    load = fixed.astype(np.float64).copy()
    amount = np.zeros(graph.shares)
    sweeps = _MAX_SWEEPS if graph.bundles > 1 else 1
    for _ in range(sweeps):
        largest = 0.0
        for bundle in range(graph.bundles):
            at = graph.subscribers(bundle)
            member = graph.member[at]
            rest = load[member] - amount[at]
            gets = pour_fluid(rest, float(weight[bundle]))
            largest = max(largest, float(np.abs(gets - amount[at]).max()))
            amount[at] = gets
            load[member] = rest + gets
        if largest <= _CLOSE * load.max(initial=0.0):
            break
    return load


def pour_fluid(load: Floats, amount: float) -> Floats:
    """How much each member gets if the lowest loads are raised to one level."""
    ascending = np.sort(load)
    below = ascending.cumsum()
    count = np.arange(1, len(load) + 1)
    receivers = max(1, int((ascending * count - below).searchsorted(amount, side="right")))
    level = (amount + below[receivers - 1]) / receivers
    gets: Floats = np.maximum(level - load, 0.0)
    return gets
