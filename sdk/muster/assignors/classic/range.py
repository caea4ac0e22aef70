"""`range`: of every topic, each subscriber gets one contiguous range.

Source: Kafka's RangeAssignor (in org.apache.kafka.clients.consumer).
"""

from __future__ import annotations

import numpy as np

from muster.assignors.classic.group import GroupAssignment, NumberedGroup
from muster.assignors.classic.range_with_racks import assign_range_with_racks
from muster.assignors.problem import NOBODY
from muster.assignors.range import assign_range


def compute_range(group: NumberedGroup) -> GroupAssignment:
    """The partitions of a topic, cut into ranges in the order of the members.

    Where members and replicas are in racks a member prefers partitions near it, and gets as many
    of each topic as without racks (KIP-881).
    """
    target = assign_range_with_racks(group) if any(m.rack for m in group.members) else None
    if target is None:
        nobody = np.full(group.partitions, NOBODY, dtype=np.int32)
        target = assign_range(group.make_problem(nobody))
    return group.name_target(target)
