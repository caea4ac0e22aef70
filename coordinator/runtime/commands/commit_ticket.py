"""Commit tickets: what makes a repeated commit cheap (``coordinator.runtime.api.CommitTicket``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coordinator.core.offsets.commit_grant import CommitGrant, compute_commit_grant
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Release
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.commands.apply import Apply
from coordinator.runtime.commit.partition_encoder import RECORDS_BYTES_MAX, Commit, CommitBlock
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loop.disk_space import Space
from model.commands import OffsetCommit
from model.errors import GroupError
from model.log.commit_rows import CommitRows, NamedPartitions
from storage.codec.commit_encoder import CommitEncoder


@dataclass(slots=True)
class CommitRoom:
    """What all commit tickets of a runtime use. ``is_open`` until the runtime stops."""

    apply: Apply
    writer: Writer
    clock: SteadyClock
    space: Space
    is_open: bool = True


class CommitTicket:
    """Commits of one caller to one topic, which the core has granted for as long as nothing
    changes; each is replayed and written as any other."""

    __slots__ = (
        "_encoder",
        "_grant",
        "_group_id",
        "_partitions",
        "_room",
        "_shard",
    )

    def __init__(self, room: CommitRoom, shard: Shard, grant: CommitGrant) -> None:
        topic = grant.topic
        self._room = room
        self._shard = shard
        self._grant = grant
        self._group_id = grant.group_id
        self._partitions = topic.partitions
        self._encoder = CommitEncoder(grant.group_id, topic.name, topic.topic_id)

    def commit(
        self, partition: int, offset: int, leader_epoch: int, monotonic_ms: int, release: Release
    ) -> bool:
        if not 0 <= partition < self._partitions or not self._may_commit(monotonic_ms):
            return False
        commit = (self._encoder, partition, offset, leader_epoch, self._room.clock.wall_ms())
        self._append(commit, release)
        return True

    def name_partitions(self, partitions: NDArray[np.int32]) -> NamedPartitions | None:
        numbers = partitions.tolist()
        if len(set(numbers)) < len(numbers) or not (
            0 <= min(numbers) <= max(numbers) < self._partitions
            and len(numbers) * self._encoder.size <= RECORDS_BYTES_MAX
        ):
            return None
        return NamedPartitions(partitions, self._encoder.encode_keys(numbers))

    def commit_rows(
        self, named: NamedPartitions, rows: CommitRows, monotonic_ms: int, release: Release
    ) -> bool:
        if not self._may_commit(monotonic_ms):
            return False
        self._append(CommitBlock(self._encoder, named, rows, self._room.clock.wall_ms()), release)
        self._room.writer.write_if_full()
        return True

    def _may_commit(self, monotonic_ms: int) -> bool:
        room = self._room
        return (
            self._grant.holds(self._shard) and not room.space.is_low(monotonic_ms) and room.is_open
        )

    def _append(self, commit: Commit | CommitBlock, release: Release) -> None:
        apply = self._room.apply.repeated_commit
        apply(self._shard, self._group_id, self._grant.session, commit, release)


def make_commit_ticket(
    room: CommitRoom, shard: Shard, command: OffsetCommit
) -> CommitTicket | None:
    """A ticket for commits like this one, where the core grants one."""
    try:
        grant = compute_commit_grant(shard, command)
    except GroupError:
        return None
    return None if grant is None else CommitTicket(room, shard, grant)
