"""Who waits for whom: partitions of a member's target that another member still owns; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from coordinator.core.state.consumer.consumer_group import NOBODY, ConsumerGroup
from model.ids import MemberId

_Numbers: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of a group at one moment, as parallel arrays sorted by waiter and then by owner.

    Arrays, because after a join every member of a large group may wait for many others. ``spans``
    has the begin and the end of each waiter's own by its slot.
    """

    owners: _Numbers
    numbers: _Numbers
    spans: Mapping[int, tuple[int, int]]
    owner_ids: Mapping[int, MemberId]

    def of(self, slot: int) -> Iterator[tuple[MemberId, list[int]]]:
        """The members that the member at this slot waits for, with the partition numbers."""
        span = self.spans.get(slot)
        if span is None:
            return
        begin, end = span
        pairs = zip(self.owners[begin:end].tolist(), self.numbers[begin:end].tolist(), strict=True)
        for owner, held in groupby(pairs, key=lambda pair: pair[0]):
            yield self.owner_ids[owner], [number for _, number in held]


def compute_waits(group: ConsumerGroup) -> Waits:
    """The partitions that are in the target of one member and owned by another."""
    target = np.array(group.target, np.int32)
    owner = np.array(group.owner, np.int32)
    moving = np.flatnonzero((target != owner) & (target != NOBODY) & (owner != NOBODY))
    waiters, owners = target[moving], owner[moving]
    order = np.lexsort((moving, owners, waiters))
    owner_ids: dict[int, MemberId] = {}
    for slot in np.unique(owners).tolist():
        entry = group.slots[slot]
        assert entry is not None, "an entry that owns partitions is never dropped"
        owner_ids[slot] = entry.member_id
    slots, begins = np.unique(waiters[order], return_index=True)
    bounds = pairwise([*begins.tolist(), len(moving)])
    spans = dict(zip(slots.tolist(), bounds, strict=True))
    return Waits(owners[order], moving[order].astype(np.int32), spans, owner_ids)
