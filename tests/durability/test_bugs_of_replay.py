"""Bugs that other coordinators had in replaying their log: 1 to 16 and 21 to 23 of the list in the
README beside this file, each by what triggered it (KAFKA numbers where there are)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from model.commands.offsets import TopicOffsets
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogOffset, MemberId, ProducerId
from model.log.commit_records import make_offset_columns
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from storage.codec.batch_encoding import encode_marker, reencode_batch
from storage.codec.batches import Batch, BatchRecord, decode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log.fold import PartitionFold
from tests.support.core_driver import DROPS_TOMBSTONES, compact
from tests.support.imported_groups import make_imported
from tests.support.memory import MemoryLogStore
from tests.support.storage.logs import (
    FOO,
    P0,
    G,
    current,
    describe,
    encode,
    epoch,
    gone,
    group_of,
    list_groups,
    member,
    offset,
    start_on,
    store_of,
    target,
    target_epoch,
)
from tests.support.storage.raw_log import RawLog
from tests.support.virtual.scheduler import START_WALL_MS
from tests.support.virtual.server import CALLER, VirtualServer, error_name


def classic(group: str = G, generation: int = 1) -> Record:
    """Type 2, of a group without members."""
    return make_imported("classic", group, {"generation": str(generation), "type": "consumer"})[0]


GROUP = group_of("a", 2, 0, 1)
KEYS = [classic(), offset(5), *GROUP]


@pytest.mark.parametrize("record", KEYS, ids=lambda record: type(record.key).__name__)
def test_bug_01_only_a_tombstone_is_left(record: Record) -> None:
    """KAFKA-17306: all else of the group was compacted away, and loading failed."""
    server = start_on([gone(record)])
    assert list_groups(server) == {}
    server.create("foo", 2)
    assert server.join(G, "m", ["foo"]).member_epoch == 2
    server.restart()
    assert list_groups(server) == {G: "consumer"}


def test_bug_02_the_records_of_a_group_come_in_any_order() -> None:
    """KAFKA-17306: the first that was left was not the member's metadata."""
    expected = describe(GROUP)
    for order in permutations(GROUP):
        assert describe(order) == expected
    assert list_groups(start_on(GROUP[::-1])) == {G: "consumer"}


def test_bug_03_offsets_come_before_the_group() -> None:
    """KAFKA-17306: they made a simple classic group, and then there were two of the name."""
    server = start_on([offset(7)], GROUP)
    assert list_groups(server) == {G: "consumer"}
    assert server.fetch(G, FOO, 0) == 7
    assert server.beat(server.heartbeat(G, "a", 2)).member_epoch == 2


@pytest.mark.parametrize("kind", ["streams", "share"])
@pytest.mark.parametrize("has_tombstone", [False, True])
def test_bug_04_an_upgraded_group_without_its_classic_tombstone(
    kind: str, has_tombstone: bool
) -> None:
    """KAFKA-20254: the tombstone was compacted away, the old offsets came first."""
    records = make_imported(kind, G, {"epoch": "3", "members": "a@3"})
    before = [classic(), gone(classic())] if has_tombstone else []
    server = start_on([*before, offset(7)], records)
    assert list_groups(server) == {G: kind}
    entry = server.store.get_latest(P0, encode_key(offset(7).key))
    assert entry is not None
    assert entry.value == encode_value(offset(7).value)


def test_bug_05_the_record_that_let_go_of_a_partition_is_compacted_away() -> None:
    """KAFKA-19862: the log is cleaned while it is loaded, and the next owner's record comes to a
    partition that still has one."""
    log = [
        *(member("a"), member("b"), epoch(3), target_epoch(3), target("a", 0), target("b", 1)),
        current("a", 2, 0, 1),
        current("a", 3, 0),
        current("b", 3, 1),
        current("a", 4, 0),
    ]
    expected = describe(log)
    for first in range(len(log)):
        for end in range(first, len(log) + 1):
            assert describe(compact(log, first, end, DROPS_TOMBSTONES)) == expected
    start_on(log[:7], log[8:])


@pytest.mark.parametrize("is_complete", [False, True])
def test_bug_06_the_tombstones_beside_a_members_are_compacted_away(is_complete: bool) -> None:
    """KAFKA-21102: replay raised, or the target of the member stayed for ever."""
    siblings = [gone(target("a")), gone(current("a", 2))]
    log = [*GROUP, *(siblings if is_complete else ()), gone(member("a")), epoch(3)]
    (group,) = [value for name, value in describe(log).items() if name == G]
    assert group == describe([epoch(3), target_epoch(2)])[G]
    for first in range(len(log)):
        assert describe([*log[first:], epoch(3), target_epoch(2)])[G] == group
    assert describe([*log, *siblings])[G] == group


def test_bug_07_a_group_id_is_used_for_offsets_after_its_group_is_gone() -> None:
    """KAFKA-4704: loading failed."""
    server = start_on(GROUP, [gone(record) for record in GROUP[::-1]], [offset(9)])
    assert list_groups(server) == {G: "classic"}
    assert server.fetch(G, FOO, 0) == 9
    start_on([gone(record) for record in GROUP[::-1]], [offset(9)])


# -------------------------------------------------------------------------------- transactions


def transact(server: VirtualServer, value: int, producer: int = 7) -> None:
    """An offset that waits."""
    topics = (TopicOffsets(FOO, None, make_offset_columns([(0, value, -1, "")])),)
    server.ask(TxnOffsetCommit(CALLER, G, ProducerId(producer), 0, topics))


def end(server: VirtualServer, producer: int = 7, committed: bool = True) -> None:
    """The marker of the producer's transaction."""
    partition = server.runtime.partition_of(G)
    server.ask(WriteTxnMarkers(CALLER, partition, ProducerId(producer), 0, 0, committed))


def plain(server: VirtualServer, value: int) -> None:
    server.ask(server.commit_command(G, "", None, FOO, {0: value}))


def fetch_everywhere(server: VirtualServer) -> int:
    """The offset live; it is the same after a restart and from the log as it is written."""
    live = server.fetch(G, FOO, 0)
    partition = server.runtime.partition_of(G)
    fold = PartitionFold()
    for batch in server.store.read_log(partition):
        fold.apply(batch)
    assert fold.latest == {entry.key: entry for entry in server.store.latest(partition)}
    server.restart()
    assert server.fetch(G, FOO, 0) == live
    return live


def test_bug_08_commits_in_and_out_of_transactions_are_mixed() -> None:
    """KAFKA-5247: live the end of the transaction counted, after cleaning the highest offset."""
    server = VirtualServer({"foo": 1})
    plain(server, 9)
    transact(server, 5)
    end(server)
    assert fetch_everywhere(server) == 5
    transact(server, 6)
    plain(server, 3)
    end(server)
    assert fetch_everywhere(server) == 3


def test_bug_09_the_position_of_a_commit_is_kept_with_it_through_a_restart() -> None:
    """KAFKA-14505: who had been written last was not known any more."""
    server = VirtualServer({"foo": 1})
    transact(server, 6)
    plain(server, 3)
    server.restart()
    end(server)
    assert fetch_everywhere(server) == 3


def test_bug_10_two_transactions_and_a_plain_commit_race() -> None:
    """Live and log disagreed about which of them came last (Redpanda, CORE-17000)."""
    server = VirtualServer({"foo": 1})
    transact(server, 1, producer=7)
    transact(server, 2, producer=8)
    plain(server, 3)
    transact(server, 4, producer=9)
    for producer, expected in ((9, 4), (8, 4), (7, 4)):
        end(server, producer)
        assert fetch_everywhere(server) == expected


def test_bug_11_an_offset_expires_while_a_transaction_has_staged_it() -> None:
    """The sweep's tombstone took what waited, and the marker found nothing (CORE-16998)."""
    settings = CoordinatorSettings(
        offsets_retention_minutes=1, offsets_retention_check_interval_ms=5_000
    )
    server = VirtualServer({"foo": 1}, settings=settings)
    plain(server, 3)
    transact(server, 6)
    server.advance(10 * 60_000)
    server.restart()
    server.advance(10_000)
    end(server)
    assert fetch_everywhere(server) == 6


# ---------------------------------------------------------------------------------- old logs


def test_bug_12_a_group_was_written_many_times() -> None:
    """Only the first record of a group was loaded, and its generation was stale."""
    server = start_on([epoch(2), classic("c", 1)], [epoch(9), classic("c", 8)], [epoch(11)])
    assert server.group(G).group_epoch == 11
    (shard,) = server.runtime.shards
    assert shard.classic_groups[GroupId("c")].generation == 8


def test_bug_13_a_second_load_in_one_process_has_nothing_of_the_first() -> None:
    """KAFKA-5600: caches kept members and offsets that were no more."""
    log = RawLog(MemoryLogStore(1))
    log.append(0, [encode(0, [*GROUP, offset(7)])])
    log.make_durable()
    first = VirtualServer(store=log.store)
    assert list_groups(first) == {G: "consumer"}
    tombstones = [gone(record) for record in (*GROUP, offset(7))]
    log.append(0, [encode(log.store.next_offset(P0), tombstones)])
    log.make_durable()
    first.start()
    assert list_groups(first) == {}
    assert first.fetch(G, FOO, 0) == -1


def with_gap(base_offset: int, last_offset: int, *records: Record) -> bytes:
    """A batch of which a cleaner has left these records, at its first offsets."""
    batch = decode_batch(encode(base_offset, records or [offset(1)]))
    fields = {name: getattr(batch, name) for name in Batch.__dataclass_fields__}
    kept: tuple[BatchRecord, ...] = batch.records if records else ()
    fields |= {"last_offset": last_offset, "records": kept, "count": len(kept)}
    return reencode_batch(Batch(**fields))


@pytest.mark.parametrize("records", [(), (offset(7),)], ids=["empty", "one record"])
def test_bug_14_the_log_ends_with_a_gap_that_a_cleaner_left(records: tuple[Record, ...]) -> None:
    """KAFKA-9065: the loader waited for an offset that no record had."""
    store = store_of(GROUP)
    log = RawLog(store)
    log.append(0, [with_gap(20, 29, *records)])
    log.make_durable()
    server = VirtualServer(store=store)
    assert server.store.next_offset(P0) == LogOffset(30)
    assert list_groups(server) == {G: "consumer"}
    server.create(FOO, 1)
    assert error_name(server.ask(server.commit_command("h", "", None, FOO, {0: 8}))) == "NONE"
    assert server.store.next_offset(P0) > LogOffset(30)
    server.restart()
    assert (server.fetch("h", FOO, 0), server.fetch(G, FOO, 0)) == (8, 7 if records else -1)


def test_bug_15_a_record_is_larger_than_what_is_read_or_written_at_once() -> None:
    """KAFKA-7286: the loader read the same bytes for ever."""
    small = classic().value
    assert isinstance(small, GroupMetadataValue)
    large = ClassicGroupMember(
        MemberId("m"), None, "client", "/127.0.0.1", 60_000, 10_000, b"s" * (5 << 20), b"a" * 5
    )
    record = Record(GroupMetadataKey(G), replace(small, members=(large,)))
    server = start_on([record], [offset(7, "h")])
    assert list_groups(server) == {G: "classic", "h": "classic"}
    (shard,) = server.runtime.shards
    assert [len(m.metadata) for m in shard.classic_groups[G].members.values()] == [5 << 20]


@pytest.mark.parametrize("records", [0, 1])
def test_bug_16_a_control_batch_that_a_cleaner_has_emptied(records: int) -> None:
    """KAFKA-7467: loading failed."""
    marker = decode_batch(
        encode_marker(
            5, START_WALL_MS, producer_id=7, producer_epoch=0, committed=True, coordinator_epoch=0
        )
    )
    fields = {name: getattr(marker, name) for name in Batch.__dataclass_fields__}
    kept = marker.records[:records]
    emptied = reencode_batch(Batch(**fields | {"records": kept, "count": records}))
    store: MemoryLogStore = store_of(GROUP)
    log = RawLog(store)
    log.append(0, [emptied])
    log.make_durable()
    server = VirtualServer(store=store)
    assert list_groups(server) == {G: "consumer"}


# -------------------------------------------------------------------------------- gone for good

EXPIRING = CoordinatorSettings(
    offsets_retention_minutes=1, offsets_retention_check_interval_ms=5_000
)


def expire_all(server: VirtualServer) -> None:
    server.advance(5 * 60_000)
    assert list_groups(server) == {}


def test_bug_21_a_group_that_went_is_not_back_after_a_restart() -> None:
    """The tombstones were not honoured (Redpanda #4900); nor has its successor its offsets."""
    server = VirtualServer({"foo": 1}, settings=EXPIRING)
    server.join(G, "a", ["foo"])
    server.ask(server.commit_command(G, "a", 2, "foo", {0: 7}))
    server.leave(G, "a")
    expire_all(server)
    server.restart()
    assert list_groups(server) == {}
    assert server.join(G, "b", ["foo"]).member_epoch == 2
    assert server.fetch(G, "foo", 0) == -1


def test_bug_22_a_group_of_nothing_but_commits_goes_whole() -> None:
    """KAFKA-16543: its generation was not above 0, so that no tombstone was written."""
    server = VirtualServer({"foo": 1}, settings=EXPIRING)
    plain(server, 7)
    assert list_groups(server) == {G: "classic"}
    expire_all(server)
    server.restart()
    assert list_groups(server) == {}
    assert server.fetch(G, "foo", 0) == -1


@pytest.mark.parametrize("generation", [-1, 0, 1])
def test_bug_23_a_group_of_generation_0_goes_with_a_tombstone(generation: int) -> None:
    """It went from memory alone, and came back with the next load."""
    server = VirtualServer(store=store_of([classic(G, generation), offset(7)]), settings=EXPIRING)
    assert list_groups(server) == {G: "classic"}
    expire_all(server)
    server.restart()
    assert list_groups(server) == {}
