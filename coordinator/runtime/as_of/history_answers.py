"""Answers describe and fetch commands about a group as of a past log position.

The code is the same as for live groups.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Protocol, TypeAlias, assert_never, cast

from coordinator.core.groups.group_description import (
    describe_classic_group,
    describe_consumer_group,
)
from coordinator.core.offsets.offset_fetch import check_offset_fetch
from coordinator.core.offsets.transactions import compute_stable_answer
from coordinator.core.state.shard import Shard
from coordinator.runtime.loading.shard_loader import load_shard
from coordinator.runtime.loop.slices import run_at_once
from coordinator.runtime.offsets.offset_reads import read_offsets
from model.commands.groups import ConsumerGroupDescribe, DescribeGroups
from model.commands.offsets import OffsetFetch
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import ZERO_TOPIC_ID, GroupId, LogOffset, LogPartition, TopicId, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue, RecordType
from model.responses.groups import ConsumerGroupDescribeResponse, DescribeGroupsResponse
from model.responses.offsets import OffsetFetchResponse
from model.topics import Topic, TopicImage
from storage.codec.record_codec import decode_key, decode_value
from storage.log.group_history import GroupHistory
from storage.log_store import LatestEntry, LogStore, compute_latest_key

HistoryCommand: TypeAlias = ConsumerGroupDescribe | DescribeGroups | OffsetFetch
HistoryResponse: TypeAlias = (
    ConsumerGroupDescribeResponse | DescribeGroupsResponse | OffsetFetchResponse
)

_OFFSET_TYPE = int(RecordType.OFFSET_COMMIT).to_bytes(2, "big")


class BatchReads(Protocol):
    """The log reads that answering needs: the headers of batches."""

    def read_log(self, partition: LogPartition, start: LogOffset, /) -> Iterator[bytes]:
        """Record batches in offset order, from the one that holds ``start`` on."""


class PastGroup:
    """Answers about one group as it was. ``image`` has the topics as they are now.

    A topic deleted since is named as in the group's own commits, or else shown by its id. A
    committed offset belongs to the topic it was committed for, even if another topic has that name
    now.
    """

    def __init__(
        self,
        log: BatchReads,
        history: GroupHistory,
        settings: CoordinatorSettings,
        image: TopicImage,
    ) -> None:
        # Loading and reading use only the methods that ``_PastStore`` has.
        self._store = cast(LogStore, _PastStore(log, history))
        committed = _find_committed_topics(history)
        self._image = _add_ids(image, committed)
        self._named = _add_names(self._image, committed)
        self._shard = Shard(history.position.partition, settings, self._image)
        load_shard(self._store, self._shard)
        self._add_unnamed_topics(history.group_id)

    def answer(self, command: HistoryCommand) -> HistoryResponse:
        """Answer as a live coordinator does. Raises ``GroupError``."""
        shard = self._shard
        match command:
            case ConsumerGroupDescribe(group_ids=ids):
                described = (describe_consumer_group(shard, group_id) for group_id in ids)
                return ConsumerGroupDescribeResponse(tuple(described))
            case DescribeGroups(group_ids=ids):
                return DescribeGroupsResponse(
                    tuple(describe_classic_group(shard, group_id) for group_id in ids)
                )
            case OffsetFetch():
                return self._fetch(command)
            case _:
                assert_never(command)

    def _fetch(self, command: OffsetFetch) -> OffsetFetchResponse:
        shard, group_id = self._shard, command.group_id
        has_offsets = check_offset_fetch(shard, command) and group_id in shard.offset_groups
        steps = read_offsets(self._store, shard.partition, self._named, command, has_offsets)
        answer = run_at_once(steps)
        if command.require_stable:
            answer = compute_stable_answer(answer, shard.open_transactions.unstable(group_id))
        return answer

    def _add_unnamed_topics(self, group_id: GroupId) -> None:
        """Add the members' topics whose names are unknown, so that they are shown by id."""
        group = self._shard.consumer_groups.get(group_id)
        if group is None:
            return
        held = [
            numbers
            for member in group.members()
            for numbers in (member.assigned, member.pending_revocation, member.target)
            if numbers
        ]
        ids = {
            topic.topic_id for numbers in held for topic in group.numbers.topic_partitions(numbers)
        }
        unnamed = [Topic(TopicName(""), topic_id, 0) for topic_id in ids]
        self._shard.image = _add_ids(self._image, unnamed)


def _add_ids(image: TopicImage, topics: Iterable[Topic]) -> TopicImage:
    added = {topic.topic_id: topic for topic in topics if topic.topic_id not in image.by_id}
    if not added:
        return image
    return TopicImage(image.version, image.by_name, {**image.by_id, **added})


def _add_names(image: TopicImage, committed: Iterable[Topic]) -> TopicImage:
    """The image with each name given to the topic that the group committed for."""
    return TopicImage(
        image.version, {**image.by_name, **{t.name: t for t in committed}}, image.by_id
    )


def _find_committed_topics(history: GroupHistory) -> list[Topic]:
    """The topics with ids in the group's offsets, under the names they were committed with.

    If several topics had one name, the last in the list is that of the last commit.
    """
    entries = [*history.latest.values()]
    for pending in history.pending.values():
        entries += pending.values()
    found: dict[TopicId, Topic] = {}
    for entry in sorted(entries, key=attrgetter("offset")):
        if entry.key.startswith(_OFFSET_TYPE):
            key = decode_key(entry.key)
            value = decode_value(RecordType.OFFSET_COMMIT, entry.value)[1]
            if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
                found.pop(value.topic_id, None)
                found[value.topic_id] = Topic(key.topic, value.topic_id, 0)
    found.pop(ZERO_TOPIC_ID, None)
    return list(found.values())


class _PastStore:
    """The group's part of the store, as it was."""

    def __init__(self, log: BatchReads, history: GroupHistory) -> None:
        self._log = log
        self._history = history
        self._entries: Mapping[bytes, LatestEntry] = history.latest
        self._keys = sorted(self._entries)

    def latest(self, partition: LogPartition, key_prefix: bytes = b"") -> Iterator[LatestEntry]:
        for index in range(bisect_left(self._keys, key_prefix), len(self._keys)):
            key = self._keys[index]
            if not key.startswith(key_prefix):
                return
            yield self._entries[key]

    def get_many_latest(
        self, partition: LogPartition, keys: Sequence[bytes]
    ) -> list[LatestEntry | None]:
        return [self._entries.get(compute_latest_key(key)) for key in keys]

    def pending(self, partition: LogPartition) -> Iterator[tuple[int, LatestEntry]]:
        for producer_id, entries in sorted(self._history.pending.items()):
            for _, entry in sorted(entries.items()):
                yield producer_id, entry

    def offset_group_ids(self, partition: LogPartition) -> Iterator[GroupId]:
        if next(self.latest(partition, _OFFSET_TYPE), None) is not None:
            yield self._history.group_id

    def read_log(self, partition: LogPartition, start: LogOffset) -> Iterator[bytes]:
        return self._log.read_log(partition, start)

    def side(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Nothing: producer fencing and client-side assignors are not shown for the past."""
        return iter(())
