"""Bugs that other coordinators had around a load, an unload and a write that fails: of 17 to 40 of
the list in the README beside this file those that are not elsewhere, each by what triggered it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL
from model.commands.groups import ConsumerGroupDescribe, ListGroups
from model.commands.topics import CreateTopic
from model.commands.transactions import WriteTxnMarkers
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import GroupId, LogPartition, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import OffsetCommitValue, Record
from model.responses.offsets import OffsetFetchResponse
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log_store import LatestEntry, StoreCorrupt, StoreStalled
from tests.support.memory import MemoryLogStore
from tests.support.shadow import describe_shards
from tests.support.storage.logs import FOO, P0, G, encode, list_groups, offset, store_of
from tests.support.storage.raw_log import RawLog
from tests.support.virtual.scheduler import START_WALL_MS, VirtualScheduler
from tests.support.virtual.server import CALLER, Pending, VirtualServer, error_name, make_topic_id

PARTITIONS = 4


def busy() -> VirtualServer:
    """Members and offsets in several partitions of the log."""
    server = VirtualServer({"foo": 2}, partitions=PARTITIONS)
    for number in range(8):
        server.join(f"g{number}", "a", ["foo"])
        server.ask(server.commit_command(f"g{number}", "a", 2, "foo", {0: number}))
    return server


def begin_to_load(store: MemoryLogStore) -> tuple[Runtime, VirtualScheduler]:
    """A process in the midst of its start: nothing is loaded yet."""
    scheduler = VirtualScheduler()
    runtime = Runtime(store, CoordinatorSettings(), clock=scheduler, scheduler=scheduler)
    runtime._prepare(scheduler).begin()
    return runtime, scheduler


# ----------------------------------------------------------------------------------- loading


def test_bug_17_a_read_that_ends_early_serves_nothing_of_the_part() -> None:
    """A recovery read came back short, and a part of the state was served as if it were all."""
    server = busy()
    store = server.store.crash()
    read = store.latest

    def short(partition: LogPartition, key_prefix: bytes = b"") -> Iterator[LatestEntry]:
        for number, entry in enumerate(read(partition, key_prefix)):
            if number == 1:
                raise StoreCorrupt("a table is damaged")
            yield entry

    store.latest = short  # type: ignore[method-assign]
    runtime, scheduler = begin_to_load(store)
    scheduler.run_for(1_000)
    assert not runtime.ready()
    loading = runtime._serving.loading
    assert loading is not None
    with pytest.raises(StoreCorrupt):
        asyncio.run(loading.wait())
    for number in range(8):
        pending = Pending()
        runtime.submit(server.fetch_command(f"g{number}", "foo", (0,)), pending)
        scheduler.run_for(0)
        is_whole = runtime.partition_of(GroupId(f"g{number}")) not in loading.left
        expected = "NONE" if is_whole else "COORDINATOR_LOAD_IN_PROGRESS"
        assert error_name(pending.answer) == expected
    assert loading.left, "some shard has more than one group"


def test_bug_19_a_command_before_its_group_is_loaded_is_refused() -> None:
    """It was accepted, for the flag was set when the load began to run and not before."""
    server = busy()
    store = server.store.crash()
    before = Runtime(store, CoordinatorSettings(), clock=VirtualScheduler())
    pending = Pending()
    before.submit(server.fetch_command("g1", "foo", (0,)), pending)
    assert error_name(pending.answer) == "COORDINATOR_NOT_AVAILABLE"
    runtime, _ = begin_to_load(store)
    for command in (
        server.fetch_command("g1", "foo", (0,)),
        server.commit_command("g1", "a", 2, "foo", {0: 9}),
        server.heartbeat("g1", "a", 2),
        server.join_command("g1", "b", ["foo"]),
        ListGroups(CALLER),
        WriteTxnMarkers(CALLER, LogPartition(0), ProducerId(1), 0, 0, True),
    ):
        pending = Pending()
        runtime.submit(command, pending)
        assert error_name(pending.answer) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert store.unsynced_writes == 0


def test_bug_20_what_is_committed_while_others_load_is_not_overwritten() -> None:
    """Replay went on beside the first commits, and put old offsets over new ones."""
    server = busy()
    store = server.store.crash()
    runtime, scheduler = begin_to_load(store)
    loading = runtime._serving.loading
    assert loading is not None
    committed: set[str] = set()
    while loading.left:
        for number in range(8):
            name = f"g{number}"
            pending = Pending()
            runtime.submit(server.commit_command(name, "a", 2, "foo", {0: 100 + number}), pending)
            scheduler.run_for(0) if not loading.left else scheduler.step()
            if pending.is_answered and error_name(pending.answer) == "NONE":
                committed.add(name)
    scheduler.run_for(10)
    for number in range(8):
        pending = Pending()
        runtime.submit(server.fetch_command(f"g{number}", "foo", (0,)), pending)
        scheduler.run_for(10)
        answer = pending.answer
        assert isinstance(answer, OffsetFetchResponse)
        found = answer.topics[0].partitions[0].offset
        assert (
            found == 100 + number if f"g{number}" in committed else found in (number, 100 + number)
        )


def test_bug_30_a_read_right_after_a_load_is_answered() -> None:
    """KAFKA-15910: there was no state at the position that had been loaded."""
    server = busy()
    server.crash()
    server.start()
    assert server.store.unsynced_writes == 0
    assert server.fetch("g3", "foo", 0) == 3
    assert len(list_groups(server)) == 8
    described = server.ask(ConsumerGroupDescribe(CALLER, (GroupId("g3"),)))
    assert described.groups[0].state == "Stable"  # type: ignore[union-attr]


def test_bug_31_a_write_of_nothing_right_after_a_load_is_answered() -> None:
    """KAFKA-16973: it waited for a write to come after it."""
    server = busy()
    server.restart()
    nothing = replace(server.commit_command("g1", "a", 2, "foo", {}), topics=())
    marker = WriteTxnMarkers(CALLER, LogPartition(0), ProducerId(1), 0, 0, True)
    for command in (nothing, server.heartbeat("g1", "a", 2), marker):
        assert error_name(server.ask(command)) == "NONE"


def test_bug_33_the_leader_epoch_of_a_commit_outlives_a_restart() -> None:
    """It came back as -2147483648, and the client skipped its check for truncation."""
    server = VirtualServer({"foo": 2})
    for partition, epoch in ((0, 5), (1, -1)):
        command = server.commit_command(G, "", None, "foo", {partition: 7})
        (topic,) = command.topics
        offsets = make_offset_columns([(partition, 7, epoch, "")])
        server.ask(replace(command, topics=(replace(topic, offsets=offsets),)))
    server.restart()
    answer = server.ask(server.fetch_command(G, "foo", (0, 1)))
    assert isinstance(answer, OffsetFetchResponse)
    assert [found.leader_epoch for found in answer.topics[0].partitions] == [5, None]


def test_bug_37_an_expire_timestamp_of_minus_1_is_none() -> None:
    """KAFKA-8069, KAFKA-7403: it was taken for a time, and the offset expired at once."""
    value = OffsetCommitValue(7, -1, "", START_WALL_MS, expire_timestamp=-1)
    expiring = replace(value, expire_timestamp=START_WALL_MS + 1)
    keys = [offset(7, "never").key, offset(7, "soon").key]
    pairs = [
        (encode_key(key), encode_value(each, version=1))
        for key, each in zip(keys, (value, expiring), strict=True)
    ]
    log = RawLog(MemoryLogStore(1))
    log.append(0, [encode_batch(0, pairs, START_WALL_MS)])
    log.make_durable()
    server = VirtualServer(store=log.store)
    assert set(list_groups(server)) == {"never", "soon"}
    server.advance(2 * server.settings.offsets_retention_check_interval_ms)
    assert set(list_groups(server)) == {"never"}
    assert server.fetch("never", FOO, 0) == 7


# ---------------------------------------------------------------------------- writes that fail


def test_bug_40_what_is_refused_or_late_leaves_no_trace() -> None:
    """KAFKA-16106: a write that failed had changed the number of groups for good."""
    server = VirtualServer({"foo": 2}, settings=CoordinatorSettings(log_min_free_bytes=100))
    server.join(G, "a", ["foo"])
    server.ask(server.commit_command(G, "a", 2, "foo", {0: 7}))
    state = describe_shards(server.runtime.shards)
    written = server.runtime.stats.records_written
    has_offsets = [set(shard.offset_groups) for shard in server.runtime.shards]
    members = sum(len(group.entries) for group in server.runtime.groups())
    server.runtime._around.space._free_bytes = lambda: 10
    server.advance(2_000)
    for command in (
        server.join_command("new", "x", ["foo"]),
        server.join_command(G, "x", ["foo"]),
        server.commit_command("other", "", None, "foo", {0: 1}),
        CreateTopic(INTERNAL, TopicName("bar"), make_topic_id("bar"), 1),
    ):
        assert isinstance(server.ask(command), GroupError)
    assert describe_shards(server.runtime.shards) == state
    assert [set(shard.offset_groups) for shard in server.runtime.shards] == has_offsets
    assert sum(len(group.entries) for group in server.runtime.groups()) == members
    assert server.runtime.stats.records_written == written
    assert server.runtime.liveness.get(GroupId("new"), "x") is None  # type: ignore[arg-type]
    server.runtime._around.space._free_bytes = lambda: 1_000
    server.advance(2_000)
    stalled = iter([True] * 3)
    write = server.store.write

    def stalling(*arguments: object) -> None:
        if next(stalled, False):
            raise StoreStalled("busy")
        write(*arguments)  # type: ignore[arg-type]

    server.store.write = stalling  # type: ignore[method-assign,assignment]
    pending = server.submit(server.commit_command("late", "", None, "foo", {0: 1}))
    server.advance(100)
    assert error_name(pending.answer) == "NONE"
    assert server.runtime.stats.records_written == written + 1


# --------------------------------------------------------------------------------- versions


def test_records_of_a_later_kafka_stand_in_nobodys_way() -> None:
    """KIP-915: a type, and a version of a value, that this version does not know."""
    store = store_of([offset(7)])
    log = RawLog(store)
    later = [
        (b"\x00\x63whatever", b"\x00\x01later"),
        (encode_key(offset(8, "h").key), b"\x00\x63" + encode_value(offset(8).value)[2:]),
    ]
    log.append(0, [encode_batch(store.next_offset(P0), later, START_WALL_MS)])
    log.append(0, [encode(store.next_offset(P0), [Record(offset(9, "i").key, offset(9).value)])])
    log.make_durable()
    server = VirtualServer(store=store)
    assert (server.fetch(G, FOO, 0), server.fetch("i", FOO, 0)) == (7, 9)
    assert server.failures == []
