"""Offsets of deleted topics: telling them from those of a new topic with the same name.

Offsets are stored by topic name, and those of a deleted topic are tombstoned in slices. Offsets not
yet tombstoned must be invisible: the task that tombstones them and the reads share the rule here.
A name without a deletion in progress keeps all its offsets, whatever their topic ids: an imported
log has topic ids that may differ from those of the topics here.
"""

from __future__ import annotations

from collections.abc import Iterable

from model.ids import ZERO_TOPIC_ID, LogOffset, LogPartition, TopicId, TopicName
from model.log.records import LegacyOffsetCommitValue, OffsetCommitValue
from model.log.side_records import TopicDeletionValue
from model.topics import TopicImage


class DeletedTopics:
    """The deletions in effect for an image: those whose topic is no longer in the image.

    A deletion whose topic still is in the image is ignored: it may not be durable yet.
    """

    __slots__ = ("_deletions", "_image")

    def __init__(
        self, image: TopicImage, deletions: Iterable[tuple[TopicId, TopicDeletionValue]] = ()
    ) -> None:
        self._image = image
        self._deletions: dict[TopicName, list[TopicDeletionValue]] = {}
        for topic_id, deletion in deletions:
            if topic_id not in image.by_id:
                self._deletions.setdefault(deletion.topic, []).append(deletion)

    def has(
        self,
        topic: TopicName,
        value: OffsetCommitValue | LegacyOffsetCommitValue,
        log_partition: LogPartition,
        log_offset: LogOffset,
    ) -> bool:
        """Whether an offset stored under this topic name was committed to a deleted topic.

        ``log_partition`` and ``log_offset`` are the position of its record in the log.
        """
        deletions = self._deletions
        if not deletions:
            return False
        return any(
            is_of_deleted_topic(self._image, deletion, topic, value, log_partition, log_offset)
            for deletion in deletions.get(topic, ())
        )


NOTHING_DELETED = DeletedTopics(TopicImage())


def is_of_deleted_topic(
    image: TopicImage,
    deletion: TopicDeletionValue,
    topic: TopicName,
    value: OffsetCommitValue | LegacyOffsetCommitValue,
    log_partition: LogPartition,
    log_offset: LogOffset,
) -> bool:
    """Whether the offset belongs to the deleted topic, not to a later topic with its name.

    The position in the log decides: records from before the deletion belong to the deleted topic.
    If the deletion has no log ends, the topic id decides, or the commit time for an offset without
    one (from a transaction, or from an older Kafka).
    """
    if topic != deletion.topic:
        return False
    topic_id = value.topic_id if isinstance(value, OffsetCommitValue) else ZERO_TOPIC_ID
    if topic_id != ZERO_TOPIC_ID:
        current = image.by_name.get(topic)
        if current is not None and current.topic_id == topic_id:
            return False
    if deletion.log_ends:
        # A log partition that was added later had no records then.
        ends = deletion.log_ends
        return log_partition < len(ends) and log_offset < ends[log_partition]
    if topic_id != ZERO_TOPIC_ID:
        return True
    return not deletion.deleted_at_ms or value.commit_timestamp <= deletion.deleted_at_ms
