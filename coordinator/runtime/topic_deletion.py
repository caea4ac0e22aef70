"""The offsets of deleted topics: found in the store in slices, tombstoned, and then forgotten.

That a topic is being deleted is durable, so that a restart goes on where this one ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from coordinator.core.deleted_topics import is_of_deleted_topic
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.clock import Scheduler
from coordinator.runtime.offset_reads import StoredOffset, decode_stored_offsets
from model.commands import INTERNAL, Command, DeleteTopicOffsets, ForgetDeletedTopic
from model.errors import GroupError
from model.ids import GroupId, LogPartition, TopicId, compute_log_partition
from model.records import OffsetCommitKey, TopicDeletionValue
from model.topics import TopicImage
from storage.codec.records import encode_key
from storage.log_store import LogStore

SLICE = 500
RETRY_MS = 1_000
STALL_RETRY_MS = 5
_OFFSET_KEYS = b"\x00\x01"
_Found = tuple[StoredOffset, int | None]


class _Deletion:
    """One walk over all offsets for one topic, with the producer of those that are pending."""

    __slots__ = ("has_ended", "topic_id", "value", "waiting", "walk", "was_refused")

    def __init__(
        self, topic_id: TopicId, value: TopicDeletionValue, walk: Iterator[_Found]
    ) -> None:
        self.topic_id = topic_id
        self.value = value
        self.walk = walk
        self.has_ended = False
        self.was_refused = False
        self.waiting = 0
        """Commands that are not answered yet."""


class TopicDeletion:
    """Walks over all committed offsets once for each deleted topic.

    ``image`` gives the topics, durable or not. ``write_gathered`` writes what is gathered, and
    says whether the store could take it. ``on_deleted`` is told of each group that durably lost
    offsets.
    """

    def __init__(
        self,
        store: LogStore,
        scheduler: Scheduler,
        *,
        image: Callable[[], TopicImage],
        write_gathered: Callable[[], bool],
        submit: Callable[[Command, Reply], None],
        on_deleted: Callable[[GroupId], None],
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._image = image
        self._write_gathered = write_gathered
        self._submit = submit
        self._on_deleted = on_deleted
        self._running: set[TopicId] = set()

    def begin(self, topic_id: TopicId, value: TopicDeletionValue) -> None:
        """Begin, unless it has begun already."""
        if topic_id not in self._running:
            self._running.add(topic_id)
            deletion = _Deletion(topic_id, value, self._walk())
            self._scheduler.call_soon(lambda: self._step(deletion))

    def _walk(self) -> Iterator[_Found]:
        """First what is pending, all at once: a marker may make it a committed offset later.

        What is pending later than this walk began is of a later topic.
        """
        partitions = [LogPartition(number) for number in range(self._store.partitions)]
        pending = [
            (producer_id, entry)
            for partition in partitions
            for producer_id, entry in self._store.pending(partition)
        ]
        for producer_id, entry in pending:
            yield from ((stored, producer_id) for stored in decode_stored_offsets((entry,)))
        for partition in partitions:
            entries = self._store.latest(partition, _OFFSET_KEYS)
            yield from ((stored, None) for stored in decode_stored_offsets(entries))

    def _step(self, deletion: _Deletion) -> None:
        # What is only gathered the store does not show: an offset of this topic would be missed,
        # and one of a new topic of its name would be followed by the tombstone of the old.
        if not self._write_gathered():
            self._scheduler.call_later_ms(STALL_RETRY_MS, lambda: self._step(deletion))
            return
        seen = list(islice(deletion.walk, SLICE))
        found: dict[GroupId, dict[int, None]] = {}
        for stored, producer_id in seen:
            if self._is_of(stored, deletion) and self._is_current(stored, producer_id):
                found.setdefault(stored.group_id, {})[stored.partition] = None
        for group_id, partitions in found.items():
            deletion.waiting += 1
            self._submit(
                DeleteTopicOffsets(INTERNAL, group_id, deletion.value.topic, tuple(partitions)),
                partial(self._note, deletion, group_id),
            )
        if len(seen) == SLICE:
            self._scheduler.call_soon(lambda: self._step(deletion))
        else:
            deletion.has_ended = True
            self._end_if_answered(deletion)

    def _is_of(self, stored: StoredOffset, deletion: _Deletion) -> bool:
        return is_of_deleted_topic(
            self._image(),
            deletion.value,
            stored.topic,
            stored.value,
            compute_log_partition(stored.group_id, self._store.partitions),
            stored.log_offset,
        )

    def _is_current(self, stored: StoredOffset, producer_id: int | None) -> bool:
        """The walk shows each partition as it was when the walk came to it."""
        partition = compute_log_partition(stored.group_id, self._store.partitions)
        key = encode_key(OffsetCommitKey(stored.group_id, stored.topic, stored.partition))
        entry = self._store.get_latest(partition, key)
        if producer_id is not None:
            pending = self._store.pending(partition, producer_id)
            entry = next((entry for _, entry in pending if entry.key == key), None)
        return entry is not None and next(decode_stored_offsets((entry,)), None) == stored

    def _note(self, deletion: _Deletion, group_id: GroupId, answer: Answer) -> None:
        deletion.waiting -= 1
        if isinstance(answer, GroupError):
            deletion.was_refused = True
        else:
            self._on_deleted(group_id)
        self._end_if_answered(deletion)

    def _end_if_answered(self, deletion: _Deletion) -> None:
        if not deletion.has_ended or deletion.waiting:
            return
        if deletion.was_refused:
            self._retry(deletion)
        else:
            self._submit(
                ForgetDeletedTopic(INTERNAL, deletion.topic_id), partial(self._end, deletion)
            )

    def _end(self, deletion: _Deletion, answer: Answer) -> None:
        if isinstance(answer, GroupError):
            self._retry(deletion)
        else:
            self._running.discard(deletion.topic_id)

    def _retry(self, deletion: _Deletion) -> None:
        def retry() -> None:
            self._running.discard(deletion.topic_id)
            self.begin(deletion.topic_id, deletion.value)

        self._scheduler.call_later_ms(RETRY_MS, retry)
