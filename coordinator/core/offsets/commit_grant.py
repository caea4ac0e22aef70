"""What a caller may commit again and again without being checked each time."""

from __future__ import annotations

from coordinator.core.offsets.offset_commit import (
    check_commit,
    compute_session_of_committer,
    find_topic,
)
from coordinator.core.state.classic_group import ClassicGroup, ClassicGroupState
from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import ArmClassicDeadline
from coordinator.core.state.shard import Shard
from model.commands import OffsetCommit
from model.ids import GroupId
from model.topics import Topic, TopicImage
from model.value import value


@value
class CommitGrant:
    """What one caller may commit to one topic again and again, for as long as it holds.

    Nothing but the partition and the offset is left to be checked. ``session`` begins anew with
    each commit, where the caller is a member of a classic group.
    """

    group_id: GroupId
    group: ConsumerGroup | ClassicGroup | None
    revision: int
    image: TopicImage
    topic: Topic
    session: ArmClassicDeadline | None

    def holds(self, shard: Shard) -> bool:
        """Whether neither the group nor any topic has changed since."""
        return shard.image is self.image and self._is_group_of(shard)

    def _is_group_of(self, shard: Shard) -> bool:
        group, consumer_group = self.group, shard.consumer_groups.get(self.group_id)
        if isinstance(group, ConsumerGroup):
            return consumer_group is group and group.revision == self.revision
        # A classic group is a value: one that has changed is another one.
        return consumer_group is None and shard.classic_group(self.group_id) is group


def compute_commit_grant(shard: Shard, command: OffsetCommit) -> CommitGrant | None:
    """The grant of a commit to a single topic that was accepted and had nothing out of the usual.

    ``None`` where each commit must be looked at: by an older epoch, with a retention time, of
    a classic group that is not Stable. Raises what ``handle_offset_commit`` does.
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
