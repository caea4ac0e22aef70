"""`range`: each subscriber of a topic gets one contiguous range of it.

Source: Kafka's RangeAssignor (in org.apache.kafka.clients.consumer).
"""

from __future__ import annotations

import numpy as np

from muster.assignors.classic.group import GroupAssignment, NumberedGroup
from muster.assignors.classic.range_with_racks import assign_range_with_racks
from muster.assignors.problem import NOBODY
from muster.assignors.range import assign_range


def compute_range(group: NumberedGroup) -> GroupAssignment:
    """Split the partitions of each topic into ranges, in the order of the members.

    If members and replicas have racks, a member prefers partitions with a replica in its rack, and
    gets as many of each topic as without racks (KIP-881).
    """
    target = assign_range_with_racks(group) if any(m.rack for m in group.members) else None
    if target is None:
        nobody = np.full(group.partitions, NOBODY, dtype=np.int32)
        target = assign_range(group.make_problem(nobody))
    return group.name_target(target)
