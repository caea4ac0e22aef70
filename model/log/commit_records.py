"""Offsets of one commit: what a request names, and the records of them as one object."""

from __future__ import annotations

from model.ids import (
    GroupId,
    TopicId,
    TopicName,
)
from model.value import value


@value
class PartitionOffset:
    """One offset to commit. ``leader_epoch`` is ``None`` where the client knows none."""

    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str


@value
class OffsetCommits:
    """Records of type 1 for partitions of one topic, one for each of ``offsets``, in one object.

    What a commit comes to: a request of a hundred partitions carries these objects already, and
    the log takes them without a key and a value being made for each. None has an expiry of its
    own.
    """

    group: GroupId
    topic: TopicName
    topic_id: TopicId
    commit_timestamp: int
    offsets: tuple[PartitionOffset, ...]
