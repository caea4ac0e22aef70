"""Invariants over a history, each with the smallest log that breaks it."""

from __future__ import annotations

import pytest

from model.ids import GroupId, LogOffset, LogPartition
from model.records import GroupMetadataKey, GroupMetadataValue, Record
from storage.codec.batches import encode_batch
from storage.codec.records import encode_key, encode_value
from storage.memory import MemoryLogStore
from storage.verify.stores import verify_partition
from storage.verify.violation import PartitionReport
from tests.durability.logs import (
    P0,
    current,
    encode,
    epoch,
    gone,
    group_of,
    member,
    offset,
    store_of,
    target,
    target_epoch,
)
from tests.durability.planted import read_plain
from tests.unit.storage.raw_log import RawLog

CLASSIC = Record(
    GroupMetadataKey(GroupId("g")), GroupMetadataValue("consumer", 1, None, None, -1, ())
)


def verify(store: MemoryLogStore) -> PartitionReport:
    return verify_partition(read_plain(store, 0), P0)


def verify_log(*batches: list[Record]) -> PartitionReport:
    return verify(store_of(*batches))


def deletion(*names: str) -> list[Record]:
    """All tombstones of a group, in Kafka's order."""
    records = [gone(current(name, 1)) for name in names]
    records += [gone(target(name)) for name in names]
    records += [gone(target_epoch(1)), *(gone(member(name)) for name in names), gone(epoch(1))]
    return records


A = group_of("a", 2, 0, 1)


@pytest.mark.parametrize(
    ("batches", "rule", "at"),
    [
        ([A, [member("b"), current("b", 2, 1)]], "S1", 6),
        ([A, [current("a", 2, 0, 1), member("b"), current("b", 2, 0)]], "S1", 7),
        ([A, [epoch(1)]], "S5", 5),
        ([A, [epoch(4), target_epoch(4)], [target_epoch(3)]], "S5", 7),
        ([A, [epoch(3), target_epoch(3), current("a", 3, 0)], [current("a", 2, 0)]], "S5", 8),
        ([A, [target_epoch(3)]], "S6", 5),
        ([A, [epoch(3), current("a", 3, 0)]], "S6", 6),
        ([[*A, offset(7)], deletion("a")], "S19", 10),
        ([[CLASSIC], [offset(7)], [gone(CLASSIC)]], "S19", 2),
        ([A, deletion("a"), [member("a")]], "S19", 10),
        ([[member("a")]], "S19", 0),
    ],
)
def test_it_is_found_at_its_record(batches: list[list[Record]], rule: str, at: int) -> None:
    violation = verify_log(*batches).violation
    assert violation is not None
    assert (violation.rule, violation.offset) == (rule, at), str(violation)
    assert violation.key is not None
    records = [record for batch in batches for record in batch]
    assert violation.key == encode_key(records[at].key)


def test_an_epoch_of_a_partition_above_its_holders_is_found() -> None:
    key, value = current("a", 2, 0)
    (topic,) = value.assigned_partitions  # type: ignore[union-attr]
    raised = type(topic)(topic.topic_id, topic.partitions, (3,))
    later = type(value)(2, 1, 0, (raised,), ())  # type: ignore[arg-type, call-arg]
    violation = verify_log([*A, Record(key, later)]).violation
    assert violation is not None
    assert (violation.rule, violation.offset) == ("S3", 5)


@pytest.mark.parametrize(
    "batches",
    [
        # Within one write a partition may pass from one member to another.
        [A, [member("b"), target("b", 1), current("b", 2, 1), current("a", 2, 0)]],
        # A static member left, and another took its place.
        [A, [current("a", -2, 0, 1)], [gone(current("a", 2)), gone(member("a"))]],
        [A, [current("a", -2, 0, 1)], [current("a", 2, 0, 1)]],
        # A group is deleted with its offsets, and its id is used again.
        [[*A, offset(7)], [gone(offset(7)), *deletion("a")], group_of("c", 2, 0), [offset(3)]],
        # Converted, its offsets stay.
        [[*A, offset(7)], [*deletion("a"), CLASSIC]],
        # What compaction left: a member before its epoch, a tombstone of what is not there.
        [[current("a", 5, 0), gone(member("b"))], [target_epoch(5)], [epoch(5)]],
    ],
)
def test_what_may_be_passes(batches: list[list[Record]]) -> None:
    report = verify_log(*batches)
    assert report.violation is None, str(report.violation)


def test_one_write_of_several_batches_is_one_step() -> None:
    """A command's records can be more than a batch takes."""
    store = store_of(A)
    log = RawLog(store)
    log.folds[0] = _fold(store)
    padding = [offset(number, "other", number) for number in range(9_000)]
    first = [member("b"), current("b", 2, 1), *padding]
    log.append(0, [encode(5, first)])
    log.append(0, [encode(store.next_offset(P0), [*padding, current("a", 2, 0)])])
    log.make_durable()
    assert verify(store).violation is None
    later = encode_batch(
        store.next_offset(P0),
        [(encode_key(r.key), encode_value(r.value)) for r in (current("a", 2, 0, 1),) if r.value],
        1 << 60,
    )
    log.append(0, [later])
    log.make_durable()
    violation = verify(store).violation
    assert violation is not None
    assert violation.rule == "S1"


def _fold(store: MemoryLogStore) -> object:
    log = RawLog(MemoryLogStore(1))
    log.append(0, store.read_log(LogPartition(0), LogOffset(0)))
    return log.folds[0]
