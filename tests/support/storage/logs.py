"""Logs made record by record, as others may have left them, and servers started on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coordinator.core.replay.group_records import replay
from coordinator.core.state.shard import Shard
from model.commands.groups import ListGroups
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, MemberId, TopicId, TopicName
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
    MemberState,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
    TopicPartitions,
)
from model.responses.groups import ListGroupsResponse
from model.topics import TopicImage
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from tests.support.memory import MemoryLogStore
from tests.support.shadow import Description, describe_shards
from tests.support.storage.raw_log import RawLog
from tests.support.virtual.scheduler import START_WALL_MS
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")
FOO = TopicName("foo")
FOO_ID = TopicId(b"foo_________0000")
P0 = LogPartition(0)


def epoch(number: int, group: str = G) -> Record:
    """Type 3. The hash is that of no topics: a server without topics has nothing to add."""
    return Record(ConsumerGroupMetadataKey(GroupId(group)), ConsumerGroupMetadataValue(number))


def member(name: str, group: str = G) -> Record:
    """Type 5."""
    return Record(
        ConsumerGroupMemberMetadataKey(GroupId(group), MemberId(name)),
        ConsumerGroupMemberMetadataValue(
            None, None, "client", "/127.0.0.1", (FOO,), None, 60_000, None, None
        ),
    )


def target_epoch(number: int, group: str = G) -> Record:
    """Type 6."""
    key = ConsumerGroupTargetAssignmentMetadataKey(GroupId(group))
    return Record(key, ConsumerGroupTargetAssignmentMetadataValue(number))


def target(name: str, *partitions: int, group: str = G) -> Record:
    """Type 7."""
    topics = (TopicPartitions(FOO_ID, partitions),) if partitions else ()
    key = ConsumerGroupTargetAssignmentMemberKey(GroupId(group), MemberId(name))
    return Record(key, ConsumerGroupTargetAssignmentMemberValue(topics))


def current(name: str, at_epoch: int, *partitions: int, group: str = G) -> Record:
    """Type 8, stable."""
    epochs = (at_epoch,) * len(partitions)
    topics = (AssignedTopicPartitions(FOO_ID, partitions, epochs),) if partitions else ()
    return Record(
        ConsumerGroupCurrentMemberAssignmentKey(GroupId(group), MemberId(name)),
        ConsumerGroupCurrentMemberAssignmentValue(
            at_epoch, at_epoch - 1, int(MemberState.STABLE), topics, ()
        ),
    )


def offset(number: int, group: str = G, partition: int = 0) -> Record:
    """Type 1."""
    key = OffsetCommitKey(GroupId(group), FOO, partition)
    return Record(key, OffsetCommitValue(number, -1, "", START_WALL_MS))


def gone(record: Record) -> Record:
    """The tombstone of its key."""
    return Record(record.key, None)


def group_of(name: str, at_epoch: int, *partitions: int) -> list[Record]:
    """All records of a settled group with one member, as they are written."""
    return [
        member(name),
        epoch(at_epoch),
        target(name, *partitions),
        target_epoch(at_epoch),
        current(name, at_epoch, *partitions),
    ]


def encode(base_offset: int, records: Iterable[Record]) -> bytes:
    """One batch."""
    pairs = [
        (encode_key(record.key), None if record.value is None else encode_value(record.value))
        for record in records
    ]
    return encode_batch(base_offset, pairs, START_WALL_MS)


def store_of(*batches: Sequence[Record]) -> MemoryLogStore:
    """A store of one partition with these batches, one after the other."""
    store = MemoryLogStore(1)
    log = RawLog(store)
    for records in batches:
        log.append(0, [encode(store.next_offset(P0), records)])
    log.make_durable()
    return store


def replay_all(records: Iterable[Record]) -> Shard:
    """A shard made of records in this order."""
    shard = Shard(P0, CoordinatorSettings(), TopicImage())
    for record in records:
        replay(shard, record)
    return shard


def describe(records: Iterable[Record]) -> dict[str, Description]:
    """The state that these records make, in this order."""
    return describe_shards([replay_all(records)])


def list_groups(server: VirtualServer) -> dict[str, str]:
    """Every group and its type."""
    answer = server.ask(ListGroups(CALLER))
    assert isinstance(answer, ListGroupsResponse), repr(answer)
    return {group.group_id: group.group_type for group in answer.groups}


def start_on(*batches: Sequence[Record]) -> VirtualServer:
    """A server on that log; what it loaded is what replaying the log gives (S13)."""
    server = VirtualServer(store=store_of(*batches))
    replayed = describe(record for records in batches for record in records)
    assert describe_shards(server.runtime.shards) == replayed
    assert server.failures == []
    return server
