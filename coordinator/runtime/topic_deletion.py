"""The offsets of deleted topics: found in the store in slices, tombstoned, and then forgotten.

That a topic is being deleted is durable, so that a restart goes on where this one ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice

from coordinator.core.deleted_topics import is_of_deleted_topic
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.clock import Scheduler
from coordinator.runtime.offset_reads import StoredOffset, decode_stored_offsets
from model.commands import INTERNAL, Command, DeleteTopicOffsets, ForgetDeletedTopic
from model.errors import GroupError
from model.ids import GroupId, LogPartition, ProducerId, TopicId, compute_log_partition
from model.records import OffsetCommitKey, TopicDeletionValue
from model.topics import TopicImage
from storage.codec.records import encode_key
from storage.log_store import LatestEntry, LogStore

SLICE = 500
RETRY_MS = 1_000
STALL_RETRY_MS = 5
_OFFSET_KEYS = b"\x00\x01"


class _Deletion:
    """One walk over all offsets for one topic."""

    __slots__ = ("has_ended", "held", "topic_id", "value", "waiting", "walk", "was_refused")

    def __init__(
        self, topic_id: TopicId, value: TopicDeletionValue, walk: Iterator[StoredOffset]
    ) -> None:
        self.topic_id = topic_id
        self.value = value
        self.walk = walk
        self.held: list[StoredOffset] = []
        """Offsets under whose keys there is one of a later topic, too."""
        self.has_ended = False
        self.was_refused = False
        self.waiting = 0
        """Commands that are not answered yet."""


class TopicDeletion:
    """Walks over all committed offsets once for each deleted topic.

    ``image`` gives the topics, durable or not, ``producers_of`` those that have an offset waiting
    under a key. ``write_gathered`` writes what is gathered, and says whether the store could take
    it. ``on_deleted`` is told of each group that durably lost offsets.
    """

    def __init__(
        self,
        store: LogStore,
        scheduler: Scheduler,
        *,
        image: Callable[[], TopicImage],
        producers_of: Callable[[OffsetCommitKey], Collection[ProducerId]],
        write_gathered: Callable[[], bool],
        submit: Callable[[Command, Reply], None],
        on_deleted: Callable[[GroupId], None],
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._image = image
        self._producers_of = producers_of
        self._write_gathered = write_gathered
        self._submit = submit
        self._on_deleted = on_deleted
        self._running: set[TopicId] = set()
        self._is_stopped = False

    def begin(self, topic_id: TopicId, value: TopicDeletionValue) -> None:
        """Begin, unless it has begun already."""
        if topic_id not in self._running:
            self._running.add(topic_id)
            deletion = _Deletion(topic_id, value, self._walk())
            self._scheduler.call_soon(lambda: self._step(deletion))

    def stop(self) -> None:
        """Look no more: the store is about to be closed. The next start goes on."""
        self._is_stopped = True

    def _walk(self) -> Iterator[StoredOffset]:
        """First what is pending, all at once: a marker may make it a committed offset later.

        What is pending later than this walk began is of a later topic.
        """
        partitions = [LogPartition(number) for number in range(self._store.partitions)]
        pending = [entry for each in partitions for _, entry in self._store.pending(each)]
        yield from decode_stored_offsets(pending)
        for partition in partitions:
            yield from decode_stored_offsets(self._store.latest(partition, _OFFSET_KEYS))

    def _step(self, deletion: _Deletion) -> None:
        if self._is_stopped:
            return
        # What is only gathered the store does not show: an offset of this topic would be missed,
        # and one of a new topic of its name would be followed by the tombstone of the old.
        if not self._write_gathered():
            self._scheduler.call_later_ms(STALL_RETRY_MS, lambda: self._step(deletion))
            return
        seen = list(islice(deletion.walk, SLICE))
        found: dict[GroupId, list[int]] = {}
        for stored in self._select(seen, deletion):
            found.setdefault(stored.group_id, []).append(stored.partition)
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

    def _select(self, seen: Iterable[StoredOffset], deletion: _Deletion) -> Iterator[StoredOffset]:
        """Those whose key can be tombstoned, each key once, as the store has it now.

        A tombstone takes all that stands and waits under its key, of every producer. Where an
        offset of a later topic is among that, the key is held until markers have left only one of
        the two; nobody sees the old one meanwhile.
        """
        candidates = {
            OffsetCommitKey(stored.group_id, stored.topic, stored.partition): stored
            for stored in seen
            if self._is_of(stored, deletion)
        }
        entries = self._read_all_under(candidates)
        for key, stored in candidates.items():
            are_of = [self._is_of(each, deletion) for each in decode_stored_offsets(entries[key])]
            if are_of and all(are_of):
                yield stored
            elif any(are_of):
                deletion.held.append(stored)

    def _is_of(self, stored: StoredOffset, deletion: _Deletion) -> bool:
        return stored.topic == deletion.value.topic and is_of_deleted_topic(
            self._image(),
            deletion.value,
            stored.topic,
            stored.value,
            compute_log_partition(stored.group_id, self._store.partitions),
            stored.log_offset,
        )

    def _read_all_under(
        self, keys: Iterable[OffsetCommitKey]
    ) -> dict[OffsetCommitKey, list[LatestEntry]]:
        """What stands and what waits, of every producer. Each producer is read once."""
        found: dict[OffsetCommitKey, list[LatestEntry]] = {}
        by_encoded: dict[bytes, list[LatestEntry]] = {}
        producers: dict[tuple[LogPartition, ProducerId], None] = {}
        for key in keys:
            partition = compute_log_partition(key.group, self._store.partitions)
            encoded = encode_key(key)
            entry = self._store.get_latest(partition, encoded)
            found[key] = by_encoded[encoded] = [] if entry is None else [entry]
            for producer_id in self._producers_of(key):
                producers[partition, producer_id] = None
        for partition, producer_id in producers:
            for _, entry in self._store.pending(partition, producer_id):
                if entry.key in by_encoded:
                    by_encoded[entry.key].append(entry)
        return found

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
        elif deletion.held:
            self._scheduler.call_later_ms(RETRY_MS, lambda: self._look_again(deletion))
        else:
            self._submit(
                ForgetDeletedTopic(INTERNAL, deletion.topic_id), partial(self._end, deletion)
            )

    def _look_again(self, deletion: _Deletion) -> None:
        """At what was held: a transaction under each key was open, and times out at the latest."""
        deletion.walk, deletion.held = iter(deletion.held), []
        deletion.has_ended = False
        self._step(deletion)

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
