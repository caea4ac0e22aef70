"""What a caller may commit again and again without being checked each time."""

from __future__ import annotations

from coordinator.core.consumer_group import ConsumerGroup
from coordinator.core.offsets import check_commit, find_topic
from coordinator.core.shard import Shard
from model.commands import OffsetCommit
from model.ids import GroupId
from model.topics import Topic, TopicImage
from model.value import value


@value
class CommitGrant:
    """What one caller may commit to one topic again and again, for as long as it holds.

    Nothing but the partition and the offset is left to be checked.
    """

    group_id: GroupId
    group: ConsumerGroup | None
    revision: int
    image: TopicImage
    topic: Topic

    def holds(self, shard: Shard) -> bool:
        """Whether neither the group nor any topic has changed since."""
        group = self.group
        return (
            shard.image is self.image
            and shard.consumer_groups.get(self.group_id) is group
            and (
                shard.classic_group(self.group_id) is None
                if group is None
                else group.revision == self.revision
            )
        )


def compute_commit_grant(shard: Shard, command: OffsetCommit) -> CommitGrant | None:
    """The grant of a commit to a single topic that was accepted and had nothing out of the usual.

    ``None`` where each commit must be looked at: by an older epoch, with a retention time, of
    a group with a classic past. Raises what ``handle_offset_commit`` does.
    """
    topic = find_topic(shard, command.topics[0])
    if (
        topic is None
        or len(command.topics) != 1
        or command.retention_time_ms is not None
        or shard.classic_group(command.group_id) is not None
        or check_commit(shard, command) is not None
    ):
        return None
    group = shard.consumer_groups.get(command.group_id)
    revision = 0 if group is None else group.revision
    return CommitGrant(command.group_id, group, revision, shard.image, topic)
