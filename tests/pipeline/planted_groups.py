"""Breaches of the invariants of groups, planted in copies of Kafka's own log.

Each kind edits the records of one partition, which are then encoded again, and says which rules
must be found broken and at which offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from model.ids import GroupId, TopicId, TopicName
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TopicPartitions,
)
from storage.codec.batch_encoding import encode_batch, reencode_batch, select_records
from storage.codec.batches import Batch, BatchRecord
from storage.codec.record_codec import decode_key, decode_value, encode_key, encode_value
from tests.pipeline.logged import SEGMENTS
from tests.support.batches import decode_batches

Edit = Callable[[Any], Any]


@cache
def read_partition(partition: int) -> tuple[Batch, ...]:
    (file,) = (SEGMENTS / f"__consumer_offsets-{partition}").glob("*.log")
    return tuple(decode_batches(file.read_bytes()))


def list_records(batches: tuple[Batch, ...]) -> Iterator[tuple[Batch, BatchRecord, Any, Any]]:
    """Records with their batch, key and value; markers are left out."""
    for batch in batches:
        for record in () if batch.is_control else batch.records:
            assert record.key is not None
            type_id = int.from_bytes(record.key[:2], "big")
            value = None if record.value is None else decode_value(type_id, record.value)[1]
            yield batch, record, decode_key(record.key), value


def group_of(key: Any) -> str:
    return str(getattr(key, "group", None) or getattr(key, "group_id", ""))


class Log:
    """The log of a partition, to be edited."""

    def __init__(self, partition: int) -> None:
        self.batches = list(read_partition(partition))

    def records(self) -> Iterator[tuple[Batch, BatchRecord, Any, Any]]:
        return list_records(tuple(self.batches))

    def change(self, offset: int, edit: Callable[[BatchRecord], BatchRecord | None]) -> None:
        """Puts another record at an offset, or none."""
        for index, batch in enumerate(self.batches):
            if batch.base_offset <= offset <= batch.last_offset:
                records = [edit(r) if r.offset == offset else r for r in batch.records]
                kept = tuple(record for record in records if record is not None)
                assert kept != batch.records
                self.batches[index] = replace(batch, records=kept, count=len(kept))

    def change_value(self, offset: int, edit: Edit) -> None:
        def edited(record: BatchRecord) -> BatchRecord:
            assert record.key is not None
            assert record.value is not None
            version, value = decode_value(int.from_bytes(record.key[:2], "big"), record.value)
            return record._replace(value=encode_value(edit(value), version))

        self.change(offset, edited)

    def split(self, offset: int) -> None:
        """What was written at once is two batches, of which the second begins at the offset."""
        (found,) = [b for b in self.batches if b.base_offset < offset <= b.last_offset]
        halves = [
            [record for record in found.records if record.offset < offset],
            [record for record in found.records if record.offset >= offset],
        ]
        encoded = b"".join(select_records(found, half, is_transactional=False) for half in halves)
        index = self.batches.index(found)
        self.batches[index : index + 1] = decode_batches(encoded)

    def append(self, *records: tuple[bytes, bytes | None]) -> int:
        """A batch after the last; its offset."""
        last = self.batches[-1]
        offset = last.last_offset + 1
        encoded = encode_batch(offset, records, last.max_timestamp + 1)
        self.batches += decode_batches(encoded)
        return offset

    def encode(self) -> bytes:
        return b"".join(reencode_batch(batch) for batch in self.batches)


@dataclass(frozen=True, slots=True)
class Kind:
    """``plant`` edits a log and gives the offset of the record that breaks ``rule``.

    ``others`` are rules that cannot but be broken with it.
    """

    name: str
    rule: str
    partition: int
    plant: Callable[[Log], int]
    others: frozenset[str] = frozenset()


CONVERTED = "o15-updown-range"
"""In partition 5: an upgrade at offsets 55 to 70, a downgrade at 128 to 143."""


def hold_twice(log: Log) -> int:
    log.change_value(76, lambda value: hold_also(value, 2))
    return 76


def hold_also(
    value: ConsumerGroupCurrentMemberAssignmentValue, partition: int
) -> ConsumerGroupCurrentMemberAssignmentValue:
    (topic,) = value.assigned_partitions
    assert topic.assignment_epochs
    more = AssignedTopicPartitions(
        topic.topic_id,
        (*topic.partitions, partition),
        (*topic.assignment_epochs, value.member_epoch),
    )
    return replace(value, assigned_partitions=(more,))


def same_partition_twice(log: Log) -> int:
    log.change_value(76, lambda value: hold_also(value, 3))
    return 76


def epoch_above_its_holders(log: Log) -> int:
    def edit(
        value: ConsumerGroupCurrentMemberAssignmentValue,
    ) -> ConsumerGroupCurrentMemberAssignmentValue:
        (topic,) = value.assigned_partitions
        return replace(value, assigned_partitions=(replace(topic, assignment_epochs=(2, 2, 9)),))

    log.change_value(73, edit)
    return 73


def group_epoch_goes_back(log: Log) -> int:
    def edit(value: ConsumerGroupMetadataValue) -> ConsumerGroupMetadataValue:
        return replace(value, epoch=4)

    log.change_value(118, edit)
    return 118


def member_epoch_goes_back(log: Log) -> int:
    log.change_value(127, lambda value: replace(value, member_epoch=4))
    return 127


def generation_goes_back(log: Log) -> int:
    log.change_value(46, lambda value: replace(value, generation=0))
    return 46


def member_beyond_its_target(log: Log) -> int:
    log.change_value(127, lambda value: replace(value, member_epoch=7))
    return 127


def target_beyond_its_group(log: Log) -> int:
    log.change_value(121, lambda value: replace(value, assignment_epoch=7))
    return 121


def target_gives_it_to_another(log: Log) -> int:
    def edit(
        value: ConsumerGroupTargetAssignmentMemberValue,
    ) -> ConsumerGroupTargetAssignmentMemberValue:
        (topic,) = value.topic_partitions
        return ConsumerGroupTargetAssignmentMemberValue(
            (TopicPartitions(topic.topic_id, (*topic.partitions, 5)),)
        )

    log.change_value(86, edit)
    return 92


def newer_target_before_revoking(log: Log) -> int:
    """The record after one that tells a member to revoke still has what it must revoke."""
    before: dict[str, ConsumerGroupCurrentMemberAssignmentValue] = {}
    for _, record, key, value in log.records():
        if not isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            continue
        earlier = before.pop(key.member_id, None)
        if value is None:
            continue
        if earlier is not None and value.member_epoch > earlier.member_epoch:
            pending = earlier.partitions_pending_revocation
            log.change_value(record.offset, partial(replace, partitions_pending_revocation=pending))
            return record.offset
        if value.partitions_pending_revocation:
            before[key.member_id] = value
    raise AssertionError("no member had to revoke anything")


def offset_of_a_live_member_goes(log: Log) -> int:
    """The last commit for one of several partitions, while the group has members."""
    committed: dict[OffsetCommitKey, int] = {}
    members: set[str] = set()
    for _, record, key, value in log.records():
        if isinstance(key, ConsumerGroupMemberMetadataKey) and key.group_id == LIVE:
            (members.discard if value is None else members.add)(key.member_id)
        if isinstance(key, OffsetCommitKey) and key.group == LIVE and members:
            if key in committed and len({k for k in committed if k.topic == key.topic}) > 1:
                log.change(record.offset, lambda record: record._replace(value=None))
                return record.offset
            committed[key] = record.offset
    raise AssertionError("no offset was committed twice")


LIVE = "o08-consumer-uniform"
DELETED = "o21-deletes.delgroup"


def deleted_group_keeps_an_offset(log: Log) -> int:
    """The write that deletes a group leaves one of its offsets."""
    for batch in list(log.batches):
        found = [
            (record, key)
            for b, record, key, value in list_records((batch,))
            if value is None and group_of(key) == DELETED
        ]
        offsets = [record for record, key in found if isinstance(key, OffsetCommitKey)]
        groups = [record for record, key in found if isinstance(key, GroupMetadataKey)]
        if offsets and groups:
            log.change(offsets[0].offset, lambda record: None)
            return groups[0].offset
    raise AssertionError("no group was deleted with its offsets")


def group_comes_back_without_an_epoch(log: Log) -> int:
    for _, record, key, value in log.records():
        if not isinstance(key, ConsumerGroupMemberMetadataKey) or value is None:
            continue
        if key.group_id == CONVERTED:
            assert record.key is not None
            gone = encode_key(ConsumerGroupMetadataKey(key.group_id))
            log.append((gone, None))
            return log.append((record.key, record.value))
    raise AssertionError("the group had no member")


def two_types_at_once(log: Log) -> int:
    for _, record, key, value in log.records():
        if not isinstance(key, GroupMetadataKey) or key.group != CONVERTED:
            continue
        if isinstance(value, GroupMetadataValue) and not value.members:
            assert record.key is not None
            return log.append((record.key, record.value))
    raise AssertionError("the group was never classic and empty")


def upgrade_in_two_writes(log: Log) -> int:
    log.split(56)
    return 55


def downgrade_in_two_writes(log: Log) -> int:
    log.split(143)
    return 142


def upgrade_drops_an_offset(log: Log) -> int:
    for _, record, key, _ in log.records():
        if isinstance(key, OffsetCommitKey) and key.group == CONVERTED and record.offset < 55:
            log.change(57, partial(BatchRecord._replace, key=record.key, value=None))
            return 57
    raise AssertionError("the group had no offset")


def upgrade_changes_an_assignment(log: Log) -> int:
    log.change_value(62, lambda value: hold_also(value, 20))
    return 62


def upgrade_gives_another_topic(log: Log) -> int:
    """As many partitions, of a topic that a later commit tells the name of."""
    other = TopicId(b"other".ljust(16))

    def edit(
        value: ConsumerGroupCurrentMemberAssignmentValue,
    ) -> ConsumerGroupCurrentMemberAssignmentValue:
        (topic,) = value.assigned_partitions
        return replace(value, assigned_partitions=(replace(topic, topic_id=other),))

    log.change_value(62, edit)
    key = OffsetCommitKey(GroupId("another"), TopicName("other"), 0)
    value = OffsetCommitValue(0, -1, "", 0, topic_id=other)
    log.append((encode_key(key), encode_value(value)))
    return 62


def epochs_of_a_newer_version(log: Log) -> None:
    """A newer Kafka writes the group epochs, and what it means nobody here knows."""
    for _, record, key, value in list(log.records()):
        if isinstance(key, ConsumerGroupMetadataKey) and value is not None:
            log.change(record.offset, lambda record: record._replace(value=b"\x00\x63" + b"newer"))


KINDS = (
    Kind("two members hold a partition", "S1", 5, hold_twice, frozenset({"S7"})),
    Kind("a member holds a partition twice", "S1", 5, same_partition_twice),
    Kind("a partition's epoch is above its holder's", "S3", 5, epoch_above_its_holders),
    Kind("the group epoch goes back", "S5", 5, group_epoch_goes_back, frozenset({"S6"})),
    Kind("a member's epoch goes back", "S5", 5, member_epoch_goes_back, frozenset({"S3"})),
    Kind("the generation goes back", "S5", 5, generation_goes_back),
    Kind("a member is beyond its target", "S6", 5, member_beyond_its_target),
    Kind("the target is beyond its group", "S6", 5, target_beyond_its_group),
    Kind("the target gives it to another", "S7", 5, target_gives_it_to_another),
    Kind(
        "a newer target before it has revoked",
        "S7",
        47,
        newer_target_before_revoking,
        frozenset({"S1"}),
    ),
    Kind("an offset of live members is deleted", "S18", 47, offset_of_a_live_member_goes),
    Kind("a deleted group keeps an offset", "S19", 43, deleted_group_keeps_an_offset),
    Kind("a group comes back without an epoch", "S19", 5, group_comes_back_without_an_epoch),
    Kind("a group of two types", "S21", 5, two_types_at_once),
    Kind("an upgrade in two writes", "S21", 5, upgrade_in_two_writes, frozenset({"S19"})),
    Kind("a downgrade in two writes", "S21", 5, downgrade_in_two_writes, frozenset({"S19"})),
    Kind("an upgrade drops an offset", "S21", 5, upgrade_drops_an_offset, frozenset({"S18"})),
    Kind("an upgrade changes an assignment", "S21", 5, upgrade_changes_an_assignment),
    Kind("an upgrade gives another topic", "S21", 5, upgrade_gives_another_topic),
)
