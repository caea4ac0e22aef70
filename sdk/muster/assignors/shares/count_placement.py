"""From how many partitions each holder shall have to which ones: shared by the uniform assignors.

A *holder* is whatever partitions are handed to: a member, or a member's share of some topics.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import Ints, Members

_LOW_BITS = (1 << 32) - 1


def find_excess(holder_plus_one: Ints, held: Ints, quota: Ints) -> Ints:
    """The partitions that their holders must give up to come down to their quotas.

    `holder_plus_one`: of each partition, 0 for none. `held` and `quota`: per holder.

    What is given up is spread evenly over what was held, and shifted from one giver to the next.
    Giving up the last ones instead would hand all of one topic, be it the busiest or the idlest,
    to the next member that joins.
    """
    is_giver = held > quota
    giver = np.flatnonzero(is_giver)
    if len(giver) == 0:
        return giver
    offered = np.flatnonzero(np.append(False, is_giver).take(holder_plus_one))
    by_giver = np.sort((holder_plus_one[offered] << 32) | offered) & _LOW_BITS
    sizes = held[giver]
    size = np.repeat(sizes, sizes)
    rank = np.arange(len(by_giver)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rank += np.repeat(np.arange(len(giver)) % sizes, sizes)
    kept = np.repeat(quota[giver], sizes)
    # Of `size` ranks in a row, `kept` evenly spaced ones satisfy this; rank 0 does.
    keeps = -(rank * kept) % size < kept
    return by_giver[~keeps]


def order_by_level(level: Ints, upto: Ints) -> Members:
    """Holders in the order in which single partitions are dealt to them: lowest level first.

    Holder h appears once for each of `level[h]`, ..., `upto[h] - 1`; on one level, holders are in
    their own order. Needs `upto` to differ by at most one among those that have something to get.
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
    """As `order_by_level`, for any levels that are to be reached."""
    gets = np.maximum(upto - level, 0)
    holder = np.repeat(np.arange(len(gets)), gets)
    turn = np.arange(len(holder)) - np.repeat(np.cumsum(gets) - gets - level, gets)
    return holder[np.lexsort((holder, turn))].astype(np.int32)
