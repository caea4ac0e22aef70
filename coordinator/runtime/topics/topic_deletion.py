"""Deletes the offsets of deleted topics: walks the store in slices and writes tombstones.

The deletion of a topic is durable, so a restart resumes where the last process stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice

from coordinator.core.offsets.deleted_topics import is_of_deleted_topic
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.loop.slices import REFUSED_RETRY_MS, STALL_RETRY_MS, Paced, Slices
from coordinator.runtime.offsets.offset_reads import StoredOffset, decode_stored_offsets
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.offsets import DeleteTopicOffsets
from model.commands.topics import ForgetDeletedTopic
from model.errors import GroupError, LogPartitionStopped
from model.ids import (
    GroupId,
    LogPartition,
    ProducerId,
    TopicId,
    TopicName,
    compute_log_partition,
)
from model.log.records import OffsetCommitKey
from model.log.side_records import TopicDeletionValue
from model.topics import TopicImage
from storage.codec.record_codec import encode_key
from storage.log_store import LatestEntry, LogStore

SLICE = 300
_OFFSET_KEYS = b"\x00\x01"


class _Deletion:
    """One deleted topic."""

    __slots__ = ("held", "is_left", "topic_id", "value", "was_refused")

    def __init__(self, topic_id: TopicId, value: TopicDeletionValue) -> None:
        self.topic_id = topic_id
        self.value = value
        self.held: list[StoredOffset] = []
        """Offsets whose keys also hold an offset of a later topic of the same name."""
        self.was_refused = False
        self.is_left = False
        """Whether offsets are left to the next start, in a log partition that is stopped."""


class _Walk:
    """One walk over offsets, for the topics deleted before it began."""

    __slots__ = ("by_name", "deletions", "has_ended", "offsets", "waiting")

    def __init__(self, deletions: list[_Deletion], offsets: Iterator[StoredOffset]) -> None:
        self.deletions = deletions
        self.offsets = offsets
        self.by_name: dict[TopicName, list[_Deletion]] = {}
        for deletion in deletions:
            self.by_name.setdefault(deletion.value.topic, []).append(deletion)
        self.has_ended = False
        self.waiting = 0
        """How many commands are unanswered."""


class TopicDeletion:
    """Walks over all committed offsets, once for all topics deleted so far.

    ``deleted`` gives the topics that may still have offsets, ``image`` the topics, durable or not,
    ``producers_of`` the producers with an offset pending under a key. ``write_gathered`` writes the
    gathered records; ``False`` means that the store stalls. ``on_deleted`` gets each group that
    durably lost offsets.
    """

    def __init__(
        self,
        store: LogStore,
        slices: Slices,
        *,
        deleted: Callable[[], Iterable[tuple[TopicId, TopicDeletionValue]]],
        image: Callable[[], TopicImage],
        producers_of: Callable[[OffsetCommitKey], Collection[ProducerId]],
        write_gathered: Callable[[], bool],
        submit: Callable[[Command, Reply], None],
        on_deleted: Callable[[GroupId], None],
    ) -> None:
        self._store = store
        self._slices = slices
        self._deleted = deleted
        self._image = image
        self._producers_of = producers_of
        self._write_gathered = write_gathered
        self._submit = submit
        self._on_deleted = on_deleted
        self._running: set[TopicId] = set()
        self._is_walking = False

    def begin(self) -> None:
        """Start a walk if topics were deleted, unless one is running: the next takes them."""
        if self._is_walking:
            return
        found = [
            _Deletion(topic_id, value)
            for topic_id, value in self._deleted()
            if topic_id not in self._running
        ]
        if found:
            self._is_walking = True
            self._running.update(deletion.topic_id for deletion in found)
            self._slices.go_on(self._delete(_Walk(found, self._walk())))

    def _walk(self) -> Iterator[StoredOffset]:
        """Yield pending offsets first: a marker may commit one meanwhile, and it is met again then.

        An offset that becomes pending after this walk began belongs to a later topic.
        """
        partitions = [LogPartition(number) for number in range(self._store.partitions)]
        for partition in partitions:
            pending = self._store.pending(partition)
            yield from decode_stored_offsets(entry for _, entry in pending)
        for partition in partitions:
            yield from decode_stored_offsets(self._store.latest(partition, _OFFSET_KEYS))
        # Topics deleted meanwhile get a walk of their own.
        self._is_walking = False

    def _delete(self, walk: _Walk) -> Paced[None]:
        """Delete the offsets that the walk meets. The next start resumes an interrupted walk."""
        while True:
            # The store does not show records that are only gathered. Unwritten, an offset of this
            # topic would be missed, and an offset of a new topic of its name would be followed by
            # the old one's tombstone.
            if not self._write_gathered():
                yield STALL_RETRY_MS
                continue
            seen = list(islice(walk.offsets, SLICE))
            self._delete_seen(seen, walk)
            if len(seen) < SLICE:
                break
            yield None
        walk.has_ended = True
        self._end_if_answered(walk)
        self.begin()

    def _delete_seen(self, seen: Iterable[StoredOffset], walk: _Walk) -> None:
        found: dict[tuple[GroupId, TopicName], list[int]] = {}
        for stored in self._select(seen, walk):
            found.setdefault((stored.group_id, stored.topic), []).append(stored.partition)
        for (group_id, topic), partitions in found.items():
            walk.waiting += 1
            self._submit(
                DeleteTopicOffsets(INTERNAL, group_id, topic, tuple(partitions)),
                partial(self._note, walk, group_id, topic),
            )

    def _select(self, seen: Iterable[StoredOffset], walk: _Walk) -> Iterator[StoredOffset]:
        """The offsets whose key can be tombstoned now; each key once, as the store has it.

        A tombstone removes the committed offset under a key and every producer's pending one. If
        one of them belongs to a later topic, the key is held until markers leave offsets of one
        topic only; no reader sees the old offset meanwhile.
        """
        candidates = {
            OffsetCommitKey(stored.group_id, stored.topic, stored.partition): stored
            for stored in seen
            if stored.topic in walk.by_name and self._find_deletion(stored, walk) is not None
        }
        entries = self._read_all_under(candidates)
        for key, stored in candidates.items():
            found = [
                self._find_deletion(each, walk) for each in decode_stored_offsets(entries[key])
            ]
            if found and all(found):
                yield stored
                continue
            for deletion in dict.fromkeys(found):
                if deletion is not None:
                    deletion.held.append(stored)

    def _find_deletion(self, stored: StoredOffset, walk: _Walk) -> _Deletion | None:
        """The deleted topic that the offset belongs to, if any."""
        for deletion in walk.by_name.get(stored.topic, ()):
            if is_of_deleted_topic(
                self._image(),
                deletion.value,
                stored.topic,
                stored.value,
                compute_log_partition(stored.group_id, self._store.partitions),
                stored.log_offset,
            ):
                return deletion
        return None

    def _read_all_under(
        self, keys: Iterable[OffsetCommitKey]
    ) -> dict[OffsetCommitKey, list[LatestEntry]]:
        """The committed and pending offsets under each key; each producer is read once."""
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

    def _note(self, walk: _Walk, group_id: GroupId, topic: TopicName, answer: Answer) -> None:
        walk.waiting -= 1
        if isinstance(answer, GroupError):
            is_left = isinstance(answer, LogPartitionStopped)
            for deletion in walk.by_name[topic]:
                deletion.was_refused |= not is_left
                deletion.is_left |= is_left
        else:
            self._on_deleted(group_id)
        self._end_if_answered(walk)

    def _end_if_answered(self, walk: _Walk) -> None:
        if walk.has_ended and not walk.waiting:
            for deletion in walk.deletions:
                self._end(deletion)

    def _end(self, deletion: _Deletion) -> None:
        if deletion.was_refused:
            self._slices.run(self._retry(deletion))
        elif deletion.held:
            self._slices.run(self._look_again(deletion))
        elif not deletion.is_left:
            self._submit(
                ForgetDeletedTopic(INTERNAL, deletion.topic_id), partial(self._forgotten, deletion)
            )

    def _look_again(self, deletion: _Deletion) -> Paced[None]:
        """Walk over the held offsets again, when the open transaction of a key may have ended."""
        yield REFUSED_RETRY_MS
        held, deletion.held = deletion.held, []
        yield from self._delete(_Walk([deletion], iter(held)))

    def _forgotten(self, deletion: _Deletion, answer: Answer) -> None:
        if isinstance(answer, GroupError):
            self._slices.run(self._retry(deletion))
        else:
            self._running.discard(deletion.topic_id)

    def _retry(self, deletion: _Deletion) -> Paced[None]:
        yield REFUSED_RETRY_MS
        self._running.discard(deletion.topic_id)
        self.begin()
