"""The `range` assignor: of every topic, each subscriber gets one contiguous range.

Source: org.apache.kafka.coordinator.group.assignor.RangeAssignor of Kafka 4.3.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.problem import NOBODY, HeterogeneousSubscriptions, Ints, Members, Problem


def assign_range(problem: Problem) -> Members:
    """The member of each partition; NOBODY where nobody subscribes.

    The n partitions of a topic are cut into as many ranges as it has subscribers, in the
    members' order; the first n modulo subscribers ranges are one longer. Topics with equal
    partition counts and equal subscribers are thereby co-partitioned. The previous owners play
    no part: what keeps an assignment stable is the members' order, that is their instance ids.
    """
    subscriptions = problem.subscriptions
    if isinstance(subscriptions, HeterogeneousSubscriptions):
        return _assign_heterogeneous(problem, subscriptions)
    if problem.members == 0:
        return np.full(problem.partitions, NOBODY, dtype=np.int32)
    counts = problem.partition_counts()
    rank = _range_of_partition(problem.topic_start, counts, np.full_like(counts, problem.members))
    return rank.astype(np.int32)


def _assign_heterogeneous(problem: Problem, subscriptions: HeterogeneousSubscriptions) -> Members:
    subscriber_start, subscriber = subscriptions.by_topic()
    subscribers = np.diff(subscriber_start)
    counts = problem.partition_counts()
    subscribed = np.repeat(subscribers > 0, counts)
    rank = _range_of_partition(problem.topic_start, counts, np.maximum(subscribers, 1))
    position = rank + np.repeat(subscriber_start[:-1], counts)
    target = np.full(problem.partitions, NOBODY, dtype=np.int32)
    target[subscribed] = subscriber[position[subscribed]]
    return target


def _range_of_partition(topic_start: Ints, counts: Ints, ranges: Ints) -> Ints:
    """For each partition, the number of the range of its topic that it falls into.

    A topic of n partitions has `n % ranges` long ranges of `n // ranges + 1`, then short ones.
    Counted in long ranges from the start a partition of a short one is found too early; counted
    in short ranges after one more partition per long one, a partition of a long one is. So the
    later of the two is right for both. The quotients are floats because dividing integers costs
    ten times as much; they are exact far beyond 2**31 partitions.
    """
    short, longs = np.divmod(counts, ranges)
    local = np.arange(topic_start[-1]) - np.repeat(topic_start[:-1], counts)
    if not short.any():  # never more partitions than ranges: one each
        return local
    in_long = local / np.repeat(short + 1, counts)
    in_short = (local - np.repeat(longs, counts)) / np.repeat(np.maximum(short, 1), counts)
    rank: Ints = np.maximum(in_long, in_short).astype(np.int32).astype(np.int64)
    return rank
