"""Invariants of groups, each with the smallest log that violates it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.commands.groups import DeleteGroup
from model.ids import GroupId, LogOffset, LogPartition
from model.log.records import GroupMetadataKey, GroupMetadataValue, Record
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log.fold import PartitionFold
from storage.log_store import PartitionRewrite
from storage.transfer.imported import Imported, pack_imported
from storage.verify.stores import verify_partition
from storage.verify.violation import PartitionReport
from tests.support.memory import MemoryLogStore
from tests.support.storage.logs import (
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
from tests.support.storage.plain_store import read_plain
from tests.support.storage.raw_log import RawLog
from tests.support.virtual.server import CALLER, VirtualServer

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
        ([A, deletion("a"), [current("a", 2, 0)]], "S19", 10),
        ([A, deletion("a"), [member("b"), target("a", 0)]], "S19", 11),
        ([A, deletion("a"), [target_epoch(2)]], "S19", 10),
        ([[current("a", 5, 0)]], "S19", 0),
        ([[member("a"), target_epoch(5)]], "S19", 1),
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
        # Deleted, then committed to as a simple group: in a later write, and in the same.
        [[*A, offset(7)], [gone(offset(7)), *deletion("a")], [offset(8)]],
        [[*A, offset(7)], [gone(offset(7)), *deletion("a"), offset(8)]],
        # Its members subscribe to nothing: it is at its first epoch, which has no record.
        [[member("a"), current("a", 1)]],
        [A, deletion("a"), [member("a"), current("a", 1)]],
        # Converted, its offsets stay.
        [[*A, offset(7)], [*deletion("a"), CLASSIC]],
        # Left by compaction: a member before its epoch, a tombstone of a group that does not exist.
        [[current("a", 5, 0), gone(member("b"))], [target_epoch(5)], [epoch(5)]],
    ],
)
def test_what_may_be_passes(batches: list[list[Record]]) -> None:
    report = verify_log(*batches)
    assert report.violation is None, str(report.violation)


def make_cleaned_upgrade(*own: list[Record]) -> MemoryLogStore:
    """An imported log that Kafka's cleaner compacted soon after an upgrade.

    The tombstone of the classic group is still there, later records of the group were superseded,
    and its offsets are older than both.
    """
    store = MemoryLogStore(1)
    log = RawLog(store)
    log.append(0, [encode(0, [offset(7)]), encode(5, [gone(CLASSIC)]), encode(20, A)])
    log.make_durable()
    missing = (Imported(store.next_offset(P0), 4 + 14),)
    store.rewrite(PartitionRewrite(P0, (), (), pack_imported(*missing)))
    log.append(0, [encode(int(store.next_offset(P0)), records) for records in own])
    log.make_durable()
    return store


def test_a_log_that_was_cleaned_after_an_upgrade_is_sound() -> None:
    report = verify(make_cleaned_upgrade())
    assert report.violation is None, str(report.violation)


def test_offsets_that_a_deletion_left_in_a_cleaned_log_are_found_at_its_end() -> None:
    violation = verify(make_cleaned_upgrade([gone(offset(7)), *deletion("a")])).violation
    assert violation is None, str(violation)
    violation = verify(make_cleaned_upgrade(deletion("a"))).violation
    assert violation is not None
    assert violation.rule == "S19"
    cleaned = MemoryLogStore(1)
    log = RawLog(cleaned)
    log.append(0, [encode(0, [offset(7)]), encode(5, [gone(CLASSIC)])])
    log.make_durable()
    cleaned.rewrite(PartitionRewrite(P0, (), (), pack_imported(Imported(LogOffset(6), 4))))
    violation = verify(cleaned).violation
    assert violation is not None
    assert (violation.rule, violation.offset) == ("S19", 5)


def test_a_group_of_a_version_that_is_not_known_is_there() -> None:
    store = MemoryLogStore(1)
    log = RawLog(store)
    newer = (encode_key(epoch(1).key), b"\x00\x63newer")
    converted = [(encode_key(CLASSIC.key), None), newer]
    log.append(0, [encode(0, [offset(7)]), encode_batch(1, converted, 1 << 60)])
    log.make_durable()
    assert verify(store).violation is None


@pytest.mark.parametrize("regex", ["^$", "zzz.*", None])
def test_a_group_of_the_id_of_a_deleted_one_may_stay_at_its_first_epoch(regex: str | None) -> None:
    """Bug: a subscription without topics, or a regular expression, made a backup invalid."""
    server = VirtualServer({"foo": 2}, partitions=1)
    for _ in range(2):
        joining = server.join_command("g", "m", [])
        if regex is not None:
            joining = replace(joining, subscribed_topic_regex=regex)
        server.ask(joining)
        server.advance(1_000)
        report = verify(server.store)
        assert report.violation is None, str(report.violation)
        server.leave("g", "m")
        server.ask(DeleteGroup(CALLER, GroupId("g")))
        server.settle()
    assert verify(server.store).violation is None


def test_one_write_of_several_batches_is_one_step() -> None:
    """The records of one command may exceed a batch."""
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


def _fold(store: MemoryLogStore) -> PartitionFold:
    log = RawLog(MemoryLogStore(1))
    log.append(0, store.read_log(LogPartition(0), LogOffset(0)))
    return log.folds[0]
