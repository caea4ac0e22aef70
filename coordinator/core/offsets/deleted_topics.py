"""Offsets of topics that are deleted: whose they are, while a topic may have the name again.

Offsets are kept by name, and those of a deleted topic are tombstoned in slices. What is still to
be tombstoned nobody is to see: the walk that tombstones and the reads share one rule. Of a name
of which nothing is being deleted each offset counts, whatever its id: a log that was imported
carries ids that its topics may not have here.
"""

from __future__ import annotations

from collections.abc import Iterable

from model.ids import ZERO_TOPIC_ID, LogOffset, LogPartition, TopicId, TopicName
from model.log.records import LegacyOffsetCommitValue, OffsetCommitValue
from model.log.side_records import TopicDeletionValue
from model.topics import TopicImage


class DeletedTopics:
    """The deletions that are in force for an image, those whose topics it does not have any more.

    One that the image does not know of yet changes nothing: it may not be durable.
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
        """Whether an offset that is stored under the name was committed for a deleted topic.

        The log has it in that partition, at that offset.
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
    """Whether the offset is not of the topic that has the name now, which came after the deletion.

    The log tells: what it had when the topic was deleted is of that topic. Where a mark does not
    say how far that was, the topic id tells, or for an offset without one (of a transaction, or
    of an older Kafka) the time.
    """
    if topic != deletion.topic:
        return False
    topic_id = value.topic_id if isinstance(value, OffsetCommitValue) else ZERO_TOPIC_ID
    if topic_id != ZERO_TOPIC_ID:
        current = image.by_name.get(topic)
        if current is not None and current.topic_id == topic_id:
            return False
    if deletion.log_ends:
        # A log partition that was not there then had nothing.
        ends = deletion.log_ends
        return log_partition < len(ends) and log_offset < ends[log_partition]
    if topic_id != ZERO_TOPIC_ID:
        return True
    return not deletion.deleted_at_ms or value.commit_timestamp <= deletion.deleted_at_ms
