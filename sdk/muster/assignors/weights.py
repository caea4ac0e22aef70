"""Partition weights from offsets."""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import Floats

_LEAST = 0.01


def compute_weights_from_lag(end_offset: Floats, committed: Floats) -> Floats:
    """Weights by lag: the number of records left to read in each partition.

    NaN marks an unknown offset: such a partition gets the mean of the others. The minimum weight is
    a hundredth of the mean, because an idle partition costs something too.
    """
    return _fill(np.maximum(end_offset - committed, 0.0))


def compute_weights_from_rate(before: Floats, now: Floats, seconds: float) -> Floats:
    """Weights by consumption rate: how fast each partition's committed offset grew.

    NaN and the minimum weight are as in `compute_weights_from_lag`. Raise ValueError unless the
    time is above 0.
    """
    if not seconds > 0:
        raise ValueError(f"the interval of {seconds} s is not above 0")
    return _fill(np.maximum(now - before, 0.0) / seconds)


def _fill(weight: Floats) -> Floats:
    known = weight[np.isfinite(weight)]
    mean = float(known.mean()) if len(known) else 0.0
    if mean <= 0:
        return np.ones_like(weight)
    filled: Floats = np.where(np.isfinite(weight), np.maximum(weight, mean * _LEAST), mean)
    return filled
