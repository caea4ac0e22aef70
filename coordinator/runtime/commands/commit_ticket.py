"""Commit tickets: make repeated commits cheap (``coordinator.runtime.api.CommitTicket``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coordinator.core.offsets.commit_grant import CommitGrant, compute_commit_grant
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Release
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.commands.apply import Apply
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loop.write_space import Space
from model.commands.offsets import OffsetCommit
from model.errors import GroupError
from model.log.commit_records import Column, OffsetColumns
from storage.codec.commit_encoder import CommitEncoder


@dataclass(slots=True)
class CommitContext:
    """What all commit tickets of a runtime share. ``is_open`` until the runtime stops."""

    apply: Apply
    writer: Writer
    clock: SteadyClock
    space: Space
    is_open: bool = True


class CommitTicket:
    """Commits of one caller to one topic, which the core allows until anything relevant changes.

    Each commit is replayed and written like any other.
    """

    __slots__ = (
        "_encoder",
        "_grant",
        "_partitions",
        "_place",
        "_room",
        "_shard",
    )

    def __init__(self, room: CommitContext, shard: Shard, grant: CommitGrant) -> None:
        topic = grant.topic
        self._room = room
        self._shard = shard
        self._grant = grant
        self._partitions = topic.partitions
        self._place = shard.places.get(grant.group_id)
        self._encoder = CommitEncoder(grant.group_id, topic.name, topic.topic_id)

    def name_partitions(self, partitions: NDArray[np.int32]) -> list[bytes] | None:
        numbers = tuple(partitions.tolist())
        if len(set(numbers)) < len(numbers) or not self._has_partitions(numbers):
            return None
        return self._encoder.encode_keys(numbers)

    def commit(self, offsets: OffsetColumns, monotonic_ms: int, release: Release) -> bool:
        partitions = offsets.partitions
        if len(partitions) == 1:
            if not 0 <= partitions[0] < self._partitions:
                return False
        # If the offsets have keys, ``name_partitions`` checked their partitions.
        elif not offsets.keys and not self._has_partitions(partitions):
            return False
        grant, room, shard = self._grant, self._room, self._shard
        if not room.is_open or not grant.holds(shard) or room.space.is_low(monotonic_ms):
            return False
        entry = (shard.partition, offsets, room.clock.wall_ms(), self._encoder, release)
        room.apply.repeated_commit(shard, grant.group_id, grant.session, entry)
        if offsets.keys:
            room.writer.write_if_full()
        return True

    def permits(self, partition: int) -> bool:
        grant, room, shard = self._grant, self._room, self._shard
        if (
            not 0 <= partition < self._partitions
            or not room.is_open
            or shard.places.get(grant.group_id) is not self._place
            or not grant.holds(shard)
        ):
            return False
        if grant.session is not None:
            room.apply.renew(grant.session)
        return True

    def _has_partitions(self, partitions: Column) -> bool:
        return 0 <= min(partitions) <= max(partitions) < self._partitions


def make_commit_ticket(
    room: CommitContext, shard: Shard, command: OffsetCommit
) -> CommitTicket | None:
    """A ticket for commits like this one, if the core allows them."""
    try:
        grant = compute_commit_grant(shard, command)
    except GroupError:
        return None
    return None if grant is None else CommitTicket(room, shard, grant)
