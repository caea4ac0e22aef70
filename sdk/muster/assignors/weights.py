"""Weights of partitions, from what is known of them."""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import Floats

_LEAST = 0.01


def compute_weights_from_lag(end_offset: Floats, committed: Floats) -> Floats:
    """How much is left to read of each partition.

    NaN stands for an offset that is not known: such a partition weighs as much as the mean of the
    others. None weighs less than a hundredth of the mean: to read nothing costs something too.
    """
    return _fill(np.maximum(end_offset - committed, 0.0))


def compute_weights_from_rate(before: Floats, now: Floats, seconds: float) -> Floats:
    """How fast each partition is read: by how much its committed offset grew in that time.

    NaN and the least weight as in `compute_weights_from_lag`. Raises ValueError where the time is
    not more than 0.
    """
    if not seconds > 0:
        raise ValueError(f"{seconds} s is no time in which anything could have been read")
    return _fill(np.maximum(now - before, 0.0) / seconds)


def _fill(weight: Floats) -> Floats:
    known = weight[np.isfinite(weight)]
    mean = float(known.mean()) if len(known) else 0.0
    if mean <= 0:
        return np.ones_like(weight)
    filled: Floats = np.where(np.isfinite(weight), np.maximum(weight, mean * _LEAST), mean)
    return filled
