"""Commands that commit, fetch, delete and expire offsets of a group."""

from __future__ import annotations

from typing import Final

from model.caller import Caller
from model.ids import GroupId, InstanceId, MemberId, TopicId, TopicName
from model.log.commit_records import Column, OffsetColumns
from model.value import value


@value
class TopicOffsets:
    """Offsets to commit for one topic.

    Named by ``topic_id`` (wire version 10 and gRPC clients that know ids), by ``name``, or by
    both; the other is filled in from the topics known here.
    """

    name: TopicName | None
    topic_id: TopicId | None
    offsets: OffsetColumns

    @property
    def partitions(self) -> Column:
        """The partitions that are named, as often as they are."""
        return self.offsets.partitions


COMMIT_PARTITIONS_MAX: Final = 10_000
"""Most partitions in one commit, which is never split, so that it fits one loop iteration.

Kafka takes what fits a batch of ``max.message.bytes``, which is about as many.
"""


@value
class OffsetCommit:
    """Commit offsets. ``member_epoch`` is ``None`` for a commit without a group (-1 on the wire).

    ``by_consumer_protocol`` is false for OffsetCommit below version 9, which members of a consumer
    group must not use. ``retention_time_ms`` is ``None`` for the configured retention.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int | None
    topics: tuple[TopicOffsets, ...]
    instance_id: InstanceId | None = None
    retention_time_ms: int | None = None
    by_consumer_protocol: bool = True


@value
class TopicToFetch:
    """Partitions of one topic, named by id, by name, or by both."""

    name: TopicName | None
    topic_id: TopicId | None
    partitions: tuple[int, ...]


@value
class OffsetFetch:
    """Fetch the committed offsets of one group; all of them if ``topics`` is ``None``.

    ``member_id`` and ``member_epoch`` are checked if both are present (from version 9).
    """

    caller: Caller
    group_id: GroupId
    topics: tuple[TopicToFetch, ...] | None
    member_id: MemberId | None = None
    member_epoch: int | None = None
    require_stable: bool = False


@value
class DeleteOffsets:
    """Delete a group's offsets for topics, by name, that no member subscribes to."""

    caller: Caller
    group_id: GroupId
    topics: tuple[tuple[TopicName, tuple[int, ...]], ...]
    validate_only: bool = False


@value
class DeleteTopicOffsets:
    """Write tombstones for these offsets, committed for a deleted topic."""

    caller: Caller
    group_id: GroupId
    topic: TopicName
    partitions: tuple[int, ...]


@value
class ExpireOffsets:
    """Write tombstones for these offsets, which are past their retention.

    ``removes_group``: the group has no other offsets, and is removed too if it is empty.
    ``goes_on``: more of the group may follow.
    """

    caller: Caller
    group_id: GroupId
    offsets: tuple[tuple[TopicName, int], ...]
    removes_group: bool = False
    goes_on: bool = False
