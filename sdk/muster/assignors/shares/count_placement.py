"""Converts counts per holder to partitions, for all uniform assignors.

A *holder* is what partitions are assigned to: a member, or a member's share of some topics.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import Ints, Members

_LOW_BITS = (1 << 32) - 1


def find_excess(owner_number: Ints, held: Ints, quota: Ints) -> Ints:
    """The partitions that their holders must give up to come down to their quotas.

    `owner_number` is per partition, from 1, 0 for none; `held` and `quota` are per holder.

    The partitions given up are spread evenly over those held, and shifted from one giver to the
    next. If each gave up its last ones, the next member to join would get all of one topic, which
    may be the busiest or the idlest.
    """
    is_giver = held > quota
    giver = np.flatnonzero(is_giver)
    if len(giver) == 0:
        return giver
    offered = np.flatnonzero(np.append(False, is_giver).take(owner_number))
    by_giver = np.sort((owner_number[offered] << 32) | offered) & _LOW_BITS
    sizes = held[giver]
    size = np.repeat(sizes, sizes)
    rank = np.arange(len(by_giver)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rank += np.repeat(np.arange(len(giver)) % sizes, sizes)
    kept = np.repeat(quota[giver], sizes)
    # Of `size` consecutive ranks `kept` evenly spaced ones satisfy this; rank 0 does.
    keeps = -(rank * kept) % size < kept
    return by_giver[~keeps]


def order_by_level(level: Ints, upto: Ints) -> Members:
    """Holders in the order in which they get single partitions: lowest level first.

    Holder h appears once for each of `level[h]`, ..., `upto[h] - 1`; within a level, holders keep
    their order. Requires that `upto` differs by at most one among holders that get something.
    """
    receivers = np.flatnonzero(level < upto).astype(np.int32)
    if len(receivers) == 0:
        return receivers
    start = level[receivers]
    if (start[1:] < start[:-1]).any():
        receivers = receivers[np.argsort(start, kind="stable")]
        start = level[receivers]
    end = upto[receivers]
    common = int(end.min())
    width = np.append(np.flatnonzero(start[1:] > start[:-1]) + 1, len(start))
    rise = np.diff(start[width - 1], append=common)
    rounds = [
        np.tile(np.sort(receivers[:w]), r)
        for w, r in zip(width.tolist(), rise.tolist(), strict=True)
    ]
    return np.concatenate([*rounds, np.sort(receivers[end > common])])


def deal_in_turns(level: Ints, upto: Ints) -> Members:
    """As `order_by_level`, for any `upto`."""
    gets = np.maximum(upto - level, 0)
    holder = np.repeat(np.arange(len(gets)), gets)
    turn = np.arange(len(holder)) - np.repeat(np.cumsum(gets) - gets - level, gets)
    return holder[np.lexsort((holder, turn))].astype(np.int32)
