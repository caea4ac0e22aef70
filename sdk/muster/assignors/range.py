"""The `range` assignor: each subscriber of a topic gets one contiguous range of it.

Source: org.apache.kafka.coordinator.group.assignor.RangeAssignor of Kafka 4.3.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import NOBODY, HeterogeneousSubscriptions, Ints, Members, Problem

_SHARED_FROM = 8
"""From so many partitions a topic on, topics that are split alike are looked for."""


def assign_range(problem: Problem) -> Members:
    """The member of each partition; NOBODY if no member subscribes.

    The n partitions of a topic are split into one range per subscriber, in the members' order; the
    first `n % subscribers` ranges are one longer. Topics with equal partition counts and the same
    subscribers are thereby co-partitioned. Previous owners do not matter: the members' order, that
    is their instance ids, keeps an assignment stable.
    """
    subscriptions = problem.subscriptions
    if isinstance(subscriptions, HeterogeneousSubscriptions):
        return _assign_heterogeneous(problem, subscriptions)
    if problem.members == 0:
        return np.full(problem.partitions, NOBODY, dtype=np.int32)
    counts = problem.partition_counts()
    return _range_of_partition(problem.topic_start, counts, np.full_like(counts, problem.members))


def _assign_heterogeneous(problem: Problem, subscriptions: HeterogeneousSubscriptions) -> Members:
    subscriber_start, subscriber = subscriptions.by_topic()
    subscribers = np.diff(subscriber_start)
    counts = problem.partition_counts()
    rank = _range_of_partition(problem.topic_start, counts, np.maximum(subscribers, 1))
    position = rank + np.repeat(subscriber_start[:-1], counts)
    if subscribers.all():
        return subscriber[position].astype(np.int32, copy=False)
    subscribed = np.repeat(subscribers > 0, counts)
    target = np.full(problem.partitions, NOBODY, dtype=np.int32)
    target[subscribed] = subscriber[position[subscribed]]
    return target


def _range_of_partition(topic_start: Ints, counts: Ints, ranges: Ints) -> Members:
    """For each partition, the index of its range within its topic.

    Topics with equal partition counts and equally many ranges have the same indexes, which are
    computed once. Where topics are small there is little to share, and finding equal ones would
    cost more than it saves.

    Arrays as long as the partitions are of 32 bits and few: the kernel clears their pages each
    time, which costs more than the arithmetic.
    """
    if (counts <= ranges).all():  # one partition each
        return _add_to_each(-topic_start[:-1], counts)
    if len(counts) * _SHARED_FROM > topic_start[-1]:
        return _index_ranges(counts, ranges)
    key = counts * (np.int64(ranges.max()) + 1) + ranges
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    begins = np.cumsum(counts[first]) - counts[first]
    indexes = _index_ranges(counts[first], ranges[first])
    return indexes[_add_to_each(begins[kind] - topic_start[:-1], counts)]


def _index_ranges(counts: Ints, ranges: Ints) -> Members:
    """``_range_of_partition`` for topics one after the other.

    A topic of n partitions has `n % ranges` long ranges of `n // ranges + 1`, then short ones.
    """
    short, longs = np.divmod(counts, ranges)
    # With fewer partitions than ranges only the long ranges have one.
    filled = np.minimum(counts, ranges)
    index = _add_to_each(filled - np.cumsum(filled), filled)
    lengths = np.repeat(short, filled) + (index < np.repeat(longs, filled))
    rank: Members = np.repeat(index, lengths)
    return rank


def _add_to_each(shift: Ints, counts: Ints) -> Members:
    """0, 1, 2, … with ``shift[i]`` added to each of the ``counts[i]`` numbers of its stretch."""
    shifted: Members = np.repeat(shift.astype(np.int32), counts)
    shifted += np.arange(len(shifted), dtype=np.int32)
    return shifted
