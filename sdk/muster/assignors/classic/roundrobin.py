"""`roundrobin`: the partitions of all topics are dealt to the members in turn.

Source: Kafka's RoundRobinAssignor (in org.apache.kafka.clients.consumer).
"""

from __future__ import annotations

import numpy as np

from muster.assignors.classic.group import GroupAssignment, NumberedGroup
from muster.assignors.problem import NOBODY


def compute_roundrobin(group: NumberedGroup) -> GroupAssignment:
    """Deal topics by name and partitions by number, skipping members that do not subscribe."""
    target = np.full(group.partitions, NOBODY, dtype=np.int32)
    after_last = 0
    for topic, subscribers in enumerate(group.subscribers()):
        start, end = group.topic_start[topic : topic + 2].tolist()
        turn = int(np.searchsorted(subscribers, after_last)) + np.arange(end - start)
        target[start:end] = subscribers[turn % len(subscribers)]
        after_last = int(target[end - 1]) + 1
    return group.name_target(target)
