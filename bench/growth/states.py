"""Stores with settled groups of any shape, as a server would have left them.

Records are written directly, because joins of very many members would take longer than what is
measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bench.stores import EPOCH, LOG_PARTITIONS, StoreMaker
from coordinator.core.state.metadata_hash import compute_metadata_hash
from model.ids import GroupId, MemberId, TopicId, TopicName, compute_log_partition
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    Record,
    TopicPartitions,
)
from model.log.side_records import SideRecord, TopicSideKey, TopicSideValue
from model.topics import Topic, TopicImage, compute_image_of
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log_store import LogStore, pack_latest
from storage.side_codec import encode_side

NOW_MS = 1_700_000_000_000
GROUP = GroupId("g")
BATCH_RECORDS = 10_000
KEYS_PER_CHECKPOINT_SLICE = 10_000
REBALANCE_TIMEOUT_MS = 300_000


def make_topic(name: str, partitions: int) -> Topic:
    """A topic whose id follows from its name, so that requests can be prepared."""
    return Topic(TopicName(name), TopicId(name.encode().rjust(16, b"\x01")[-16:]), partitions)


def make_member_id(number: int) -> MemberId:
    return MemberId(f"m{number:021}")


def make_store(folder: Path, topics: Iterable[Topic], records: Iterable[Record]) -> LogStore:
    """An open store with these topics and records, all durable and with a checkpoint."""
    maker = StoreMaker(folder)
    side = [
        encode_side(
            SideRecord(TopicSideKey(topic.name), TopicSideValue(topic.topic_id, topic.partitions))
        )
        for topic in topics
    ]
    maker.store.write([], side)
    waiting: dict[GroupId, list[tuple[bytes, bytes]]] = {}
    left = iter(records)
    while taken := list(islice(left, BATCH_RECORDS)):
        for record in taken:
            assert record.value is not None
            pair = encode_key(record.key), encode_value(record.value)
            waiting.setdefault(_find_group_id(record), []).append(pair)
        for group_id, pairs in waiting.items():
            _append(maker, group_id, pairs)
        waiting.clear()
    maker.sync()
    for _ in maker.store.write_checkpoint(KEYS_PER_CHECKPOINT_SLICE):
        pass
    return maker.store


def _find_group_id(record: Record) -> GroupId:
    key: Any = record.key
    return GroupId(key.group if isinstance(key, GroupMetadataKey) else key.group_id)


def _append(maker: StoreMaker, group_id: GroupId, pairs: list[tuple[bytes, bytes]]) -> None:
    partition = compute_log_partition(group_id, LOG_PARTITIONS)
    base_offset = maker.store.next_offset(partition)
    latest: dict[bytes, bytes | None] = {
        key: pack_latest(base_offset + index, NOW_MS, value)
        for index, (key, value) in enumerate(pairs)
    }
    maker.append(partition, encode_batch(base_offset, pairs, NOW_MS), len(pairs), latest)


def make_group(
    group_id: GroupId, members: int, topic: Topic, image: TopicImage | None = None
) -> Iterator[Record]:
    """A settled group that has all partitions of a topic, evenly."""
    image = image or compute_image_of((topic,))
    names = (topic.name,)
    yield from _make_epochs(group_id, compute_metadata_hash(names, image, {}))
    for number in range(members):
        first = topic.partitions * number // members
        end = topic.partitions * (number + 1) // members
        yield from make_member(group_id, number, names, None)
        yield from _make_assignment(group_id, number, topic, range(first, end))


def make_regex_group(group_id: GroupId, regexes: Iterable[str]) -> Iterator[Record]:
    """A group with a member for each regular expression, none of which is resolved yet."""
    yield from _make_epochs(group_id, 0)
    for number, regex in enumerate(regexes):
        yield from make_member(group_id, number, (), regex)
        yield from _make_assignment(group_id, number, None, range(0))


def make_member(
    group_id: GroupId, number: int, names: tuple[TopicName, ...], regex: str | None
) -> Iterator[Record]:
    yield Record(
        ConsumerGroupMemberMetadataKey(group_id, make_member_id(number)),
        ConsumerGroupMemberMetadataValue(
            None, None, "bench", "/127.0.0.1", names, regex, REBALANCE_TIMEOUT_MS, None
        ),
    )


def _make_epochs(group_id: GroupId, metadata_hash: int) -> Iterator[Record]:
    value = ConsumerGroupMetadataValue(EPOCH, metadata_hash)
    yield Record(ConsumerGroupMetadataKey(group_id), value)
    yield Record(
        ConsumerGroupTargetAssignmentMetadataKey(group_id),
        ConsumerGroupTargetAssignmentMetadataValue(EPOCH, NOW_MS),
    )


def _make_assignment(
    group_id: GroupId, number: int, topic: Topic | None, owned: range
) -> Iterator[Record]:
    member_id, numbers = make_member_id(number), tuple(owned)
    target: tuple[TopicPartitions, ...] = ()
    assigned: tuple[AssignedTopicPartitions, ...] = ()
    if topic is not None and numbers:
        target = (TopicPartitions(topic.topic_id, numbers),)
        epochs = (EPOCH,) * len(numbers)
        assigned = (AssignedTopicPartitions(topic.topic_id, numbers, epochs),)
    yield Record(
        ConsumerGroupTargetAssignmentMemberKey(group_id, member_id),
        ConsumerGroupTargetAssignmentMemberValue(target),
    )
    yield Record(
        ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id),
        ConsumerGroupCurrentMemberAssignmentValue(EPOCH, EPOCH - 1, 0, assigned, ()),
    )
