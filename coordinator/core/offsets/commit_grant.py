"""Commit grants: the right of a caller to repeat a commit without the full checks."""

from __future__ import annotations

from coordinator.core.offsets.offset_commit import (
    check_commit,
    compute_session_of_committer,
    find_topic,
)
from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicGroupState
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import ArmClassicDeadline
from coordinator.core.state.shard import Shard
from model.commands.offsets import OffsetCommit
from model.ids import GroupId
from model.topics import Topic, TopicImage
from model.value import value


@value
class CommitGrant:
    """The right of one caller to commit repeatedly to one topic, while the grant is valid.

    Only partition and offset remain to be checked. ``session``, set if the caller is a member of a
    classic group, is renewed by each commit.
    """

    group_id: GroupId
    group: ConsumerGroup | ClassicGroup | None
    revision: int
    image: TopicImage
    topic: Topic
    session: ArmClassicDeadline | None

    def holds(self, shard: Shard) -> bool:
        """Whether the grant is valid: neither the group nor any topic has changed since."""
        return shard.image is self.image and self._is_group_of(shard)

    def _is_group_of(self, shard: Shard) -> bool:
        group, consumer_group = self.group, shard.consumer_groups.get(self.group_id)
        if isinstance(group, ConsumerGroup):
            return consumer_group is group and group.revision == self.revision
        # A classic group is an immutable value: a change makes another object.
        return consumer_group is None and shard.classic_group(self.group_id) is group


def compute_commit_grant(shard: Shard, command: OffsetCommit) -> CommitGrant | None:
    """The grant for repetitions of a plain commit to a single topic.

    ``None`` if each commit must be checked: with an older epoch, with a retention time, or in a
    classic group that is not Stable. Raises the errors of ``handle_offset_commit``.
    """
    classic = shard.classic_group(command.group_id)
    topic = find_topic(shard, command.topics[0])
    if (
        topic is None
        or len(command.topics) != 1
        or command.retention_time_ms is not None
        or (classic is not None and classic.state is not ClassicGroupState.STABLE)
        or check_commit(shard, command) is not None
    ):
        return None
    group = shard.consumer_groups.get(command.group_id)
    return CommitGrant(
        command.group_id,
        classic if group is None else group,
        0 if group is None else group.revision,
        shard.image,
        topic,
        compute_session_of_committer(shard, command),
    )
