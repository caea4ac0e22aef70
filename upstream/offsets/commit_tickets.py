"""Tickets for commits to the cluster: a repeated commit is queued without a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from coordinator.runtime.api import CommitTicket, Coordinator, Release
from model.commands.offsets import OffsetCommit
from model.ids import GroupId, TopicName
from model.log.commit_records import OffsetColumns
from model.places import Place
from model.topics import TopicImage
from upstream.offsets.offset_requests import Row

CommitRow: TypeAlias = Callable[[GroupId, Row, Release], bool]
"""Queues a row; ``False`` if it must be submitted as a command."""


class ClusterCommitTicket:
    """Commits of one partition at a time, while the runtime's own ticket is valid.

    Implements ``CommitTicket``.
    """

    __slots__ = ("_commit_row", "_group_id", "_own", "_topic")

    def __init__(
        self, own: CommitTicket, group_id: GroupId, topic: TopicName, commit_row: CommitRow
    ) -> None:
        """``own`` is the runtime's."""
        self._own = own
        self._group_id = group_id
        self._topic = topic
        self._commit_row = commit_row

    def permits(self, partition: int) -> bool:
        return self._own.permits(partition)

    def commit(self, offsets: OffsetColumns, monotonic_ms: int, release: Release) -> bool:
        if len(offsets.partitions) != 1:
            return False
        (partition,) = offsets.partitions
        if not self._own.permits(partition):
            return False
        (offset,), (leader_epoch,) = offsets.offsets, offsets.leader_epochs
        row = Row(self._topic, partition, offset, leader_epoch, "")
        return self._commit_row(self._group_id, row, release)

    def name_partitions(self, partitions: NDArray[np.int32]) -> list[bytes] | None:
        return None


def make_ticket(
    coordinator: Coordinator, command: OffsetCommit, commit_row: CommitRow
) -> ClusterCommitTicket | None:
    """A ticket for commits like this one of one partition, to be asked for before it is checked."""
    place = coordinator.place_of(command.group_id)
    if place is None or place.place is not Place.MUSTER:
        return None
    name = _find_name(coordinator.image, command)
    own = None if name is None else coordinator.commit_ticket(command)
    if name is None or own is None:
        return None
    return ClusterCommitTicket(own, command.group_id, name, commit_row)


def _find_name(image: TopicImage, command: OffsetCommit) -> TopicName | None:
    """The name of the topic, if the commit is of one partition."""
    if len(command.topics) != 1 or len(command.topics[0].partitions) != 1:
        return None
    (topic,) = command.topics
    if topic.topic_id is None:
        return topic.name
    known = image.by_id.get(topic.topic_id)
    return None if known is None else known.name
