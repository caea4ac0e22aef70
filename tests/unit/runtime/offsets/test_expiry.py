"""Which offsets and groups expire: the cases that need a log made elsewhere."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from coordinator.runtime.background import SILENCE_MS
from coordinator.runtime.offsets import expiry_walks
from coordinator.runtime.offsets.expiry_walks import SLICE
from model.commands.groups import ListGroups
from model.commands.offsets import TopicOffsets
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import ZERO_TOPIC_ID, GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import (
    ClassicGroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    RecordKey,
    RecordValue,
)
from model.log.side_records import ImportGraceKey, ImportGraceValue, SideRecord
from model.responses.groups import ListGroupsResponse
from storage.codec.batch_encoding import encode_batch, encode_marker
from storage.codec.record_codec import encode_key, encode_value
from storage.log_store import PartitionRewrite, StoreStalled
from storage.side_codec import encode_side
from storage.transfer.imported import Imported, pack_imported
from tests.support.memory import MemoryLogStore
from tests.support.storage.raw_log import RawLog
from tests.support.virtual.scheduler import START_WALL_MS
from tests.support.virtual.server import CALLER, VirtualServer

MINUTE_MS = 60_000
INTERVAL_MS = 5_000
SETTINGS = CoordinatorSettings(
    offsets_retention_minutes=1, offsets_retention_check_interval_ms=INTERVAL_MS
)
OLD_MS = START_WALL_MS - 2 * MINUTE_MS
RECENT_MS = START_WALL_MS - MINUTE_MS // 2


def subscribe(*topics: str) -> bytes:
    """A ``ConsumerProtocolSubscription`` of version 1."""
    parts = [struct.pack(">hi", 1, len(topics))]
    parts += [struct.pack(">h", len(topic)) + topic.encode() for topic in topics]
    return b"".join(parts) + struct.pack(">ii", -1, 0)


def member(subscription: bytes) -> ClassicGroupMember:
    return ClassicGroupMember(
        MemberId("m"), None, "client", "/127.0.0.1", 60_000, 45_000, subscription, b""
    )


def classic(*members: ClassicGroupMember, since_ms: int = OLD_MS) -> GroupMetadataValue:
    protocol = "range" if members else None
    leader = members[0].member_id if members else None
    return GroupMetadataValue("consumer", 1, protocol, leader, since_ms, members)


def commit(topic: str, committed_ms: int, expire_ms: int = -1) -> tuple[RecordKey, RecordValue]:
    key = OffsetCommitKey(GroupId("g"), TopicName(topic), 0)
    return key, OffsetCommitValue(5, -1, "", committed_ms, expire_ms, ZERO_TOPIC_ID)


def encode(records: list[tuple[RecordKey, RecordValue]]) -> list[tuple[bytes, bytes | None]]:
    return [(encode_key(key), encode_value(value)) for key, value in records]


def group_record(value: GroupMetadataValue) -> tuple[RecordKey, RecordValue]:
    return GroupMetadataKey(GroupId("g")), value


def make_log(*records: tuple[RecordKey, RecordValue]) -> RawLog:
    """A store of one partition with one batch."""
    log = RawLog(MemoryLogStore(1))
    log.append(0, [encode_batch(0, encode(list(records)), OLD_MS)])
    log.make_durable()
    return log


def make_server(log: RawLog, settings: CoordinatorSettings = SETTINGS) -> VirtualServer:
    assert isinstance(log.store, MemoryLogStore)
    return VirtualServer(store=log.store, settings=settings)


def kept(server: VirtualServer) -> list[str]:
    """The topics for which the group has offsets."""
    entries = server.store.latest(LogPartition(0), b"\x00\x01")
    return sorted(entry.key[7 : 7 + entry.key[6]].decode() for entry in entries)


def groups(server: VirtualServer) -> list[str]:
    answer = server.ask(ListGroups(CALLER))
    assert isinstance(answer, ListGroupsResponse)
    return [group.group_id for group in answer.groups]


EMPTY_LONG_AGO = classic()
EMPTY_RECENTLY = classic(since_ms=RECENT_MS)
EMPTY_OF_OLD_VERSION = classic(since_ms=-1)
STABLE = classic(member(subscribe("a")))
UNREADABLE = classic(member(b"\x00"))
OF_CONNECT = replace(STABLE, protocol_type="connect")
EMPTY_OF_CONNECT = replace(EMPTY_LONG_AGO, protocol_type="connect")
SIMPLE = replace(EMPTY_RECENTLY, protocol_type="")


@pytest.mark.parametrize(
    ("group", "left"),
    [
        pytest.param(EMPTY_LONG_AGO, [], id="empty: since it became empty, whatever the commits"),
        pytest.param(EMPTY_RECENTLY, ["a", "b", "c"], id="empty not for long: all are kept"),
        pytest.param(EMPTY_OF_OLD_VERSION, ["c"], id="empty, but no record says since when"),
        pytest.param(STABLE, ["a", "c"], id="stable: each commit, but for subscribed topics"),
        pytest.param(UNREADABLE, ["a", "b", "c"], id="a subscription that cannot be read"),
        pytest.param(OF_CONNECT, ["a", "b", "c"], id="members that are no consumers"),
        pytest.param(EMPTY_OF_CONNECT, [], id="empty, of another kind of member"),
        pytest.param(SIMPLE, ["c"], id="no protocol type: each commit"),
    ],
)
def test_offsets_of_a_classic_group(group: GroupMetadataValue, left: list[str]) -> None:
    server = make_server(
        make_log(
            group_record(group),
            commit("a", OLD_MS),
            commit("b", OLD_MS),
            commit("c", RECENT_MS),
        )
    )
    server.advance(INTERVAL_MS)
    assert kept(server) == left
    assert groups(server) == (["g"] if left or group.members else [])
    assert server.runtime.stats.offsets_expired == 3 - len(left)
    assert server.runtime.stats.groups_expired == (not left and not group.members)


def test_an_expiry_of_its_own_counts_whatever_the_state_that_lets_offsets_expire() -> None:
    server = make_server(
        make_log(
            group_record(EMPTY_RECENTLY),
            commit("a", OLD_MS, START_WALL_MS + INTERVAL_MS),
            commit("b", OLD_MS, START_WALL_MS + INTERVAL_MS + 1),
        )
    )
    server.advance(INTERVAL_MS)
    assert kept(server) == ["b"]
    server.advance(INTERVAL_MS)
    assert kept(server) == []


def test_a_subscription_keeps_even_what_has_an_expiry_of_its_own() -> None:
    server = make_server(
        make_log(group_record(STABLE), commit("a", OLD_MS, OLD_MS), commit("b", OLD_MS, OLD_MS))
    )
    server.advance(INTERVAL_MS)
    assert kept(server) == ["a"]


def test_a_legacy_offset_expires_too() -> None:
    key = LegacyOffsetCommitKey(GroupId("g"), TopicName("a"), 0)
    server = make_server(make_log((key, LegacyOffsetCommitValue(5, "", OLD_MS))))
    assert kept(server) == ["a"]
    server.advance(INTERVAL_MS)
    assert kept(server) == []


# -------------------------------------------------------------------------------- transactions


def make_transactional_log() -> RawLog:
    """Offsets of a and b are past their retention; one of b is pending in a transaction."""
    log = make_log(commit("a", OLD_MS), commit("b", OLD_MS))
    waiting = encode([commit("b", RECENT_MS)])
    log.append(
        0,
        [encode_batch(2, waiting, OLD_MS, producer_id=7, producer_epoch=0, is_transactional=True)],
    )
    log.make_durable()
    return log


def test_what_waits_for_the_end_of_a_transaction_keeps_its_offset_and_its_group() -> None:
    server = make_server(make_transactional_log())
    server.advance(INTERVAL_MS)
    assert kept(server) == ["b"]
    assert groups(server) == ["g"]


def test_a_group_that_only_waits_for_the_end_of_a_transaction_is_kept() -> None:
    log = make_log(group_record(EMPTY_LONG_AGO))
    waiting = encode([commit("b", RECENT_MS)])
    log.append(
        0,
        [encode_batch(1, waiting, OLD_MS, producer_id=7, producer_epoch=0, is_transactional=True)],
    )
    log.make_durable()
    server = make_server(log)
    server.advance(INTERVAL_MS)
    answer = server.ask(ListGroups(CALLER))
    assert isinstance(answer, ListGroupsResponse)
    kinds = [(group.group_id, group.protocol_type) for group in answer.groups]
    assert kinds == [("g", "consumer")], "the group itself, and not the offset that waits alone"


def test_when_the_transaction_is_aborted_the_offset_goes() -> None:
    log = make_transactional_log()
    log.append(
        0,
        [
            encode_marker(
                3, OLD_MS, producer_id=7, producer_epoch=0, committed=False, coordinator_epoch=0
            )
        ],
    )
    log.make_durable()
    server = make_server(log)
    server.advance(INTERVAL_MS)
    assert kept(server) == []
    assert groups(server) == []


# ------------------------------------------------------------------------- grace, rescue, races


def test_nothing_expires_before_one_retention_has_passed_since_an_import() -> None:
    log = make_log(group_record(EMPTY_LONG_AGO), commit("a", OLD_MS, OLD_MS))
    grace = ImportGraceValue(START_WALL_MS - MINUTE_MS + 3 * INTERVAL_MS)
    log.store.write([], [encode_side(SideRecord(ImportGraceKey(), grace))])
    log.make_durable()
    server = make_server(log)
    server.advance(3 * INTERVAL_MS - 1)
    assert kept(server) == ["a"]
    server.advance(1)
    assert kept(server) == []


def test_a_group_without_offsets_is_kept_for_the_grace_too() -> None:
    log = make_log(group_record(EMPTY_LONG_AGO))
    log.store.write([], [encode_side(SideRecord(ImportGraceKey(), ImportGraceValue(OLD_MS)))])
    log.store.write([], [encode_side(SideRecord(ImportGraceKey(), ImportGraceValue(RECENT_MS)))])
    log.make_durable()
    server = make_server(log)
    server.advance(MINUTE_MS // 2 - 1)
    assert groups(server) == ["g"]
    server.advance(INTERVAL_MS)
    assert groups(server) == []


def make_imported_log(*batches: bytes) -> RawLog:
    log = RawLog(MemoryLogStore(1))
    log.append(0, batches)
    log.make_durable()
    end = log.store.next_offset(LogPartition(0))
    note = pack_imported(Imported(end, 0))
    log.store.rewrite(PartitionRewrite(LogPartition(0), (), (), note))
    return log


def test_a_batch_of_an_imported_log_that_is_dated_ahead_expires_nothing() -> None:
    """A broker's clock was wrong for one commit; the server's clock must not follow it."""
    ahead_ms = START_WALL_MS + 100 * MINUTE_MS
    log = make_imported_log(
        encode_batch(0, encode([commit("a", OLD_MS + MINUTE_MS)]), OLD_MS + MINUTE_MS),
        encode_batch(1, encode([commit("b", ahead_ms)]), ahead_ms),
    )
    grace = SideRecord(ImportGraceKey(), ImportGraceValue(START_WALL_MS))
    log.store.write([], [encode_side(grace)])
    log.make_durable()
    server = make_server(log)
    for _ in range(2):
        assert server.runtime._clock.now().wall_ms == server.scheduler.wall_ms()
        server.advance(MINUTE_MS // 2 - INTERVAL_MS)
        assert kept(server) == ["a", "b"]
        server.restart()


def make_silent_server(silent_ms: int) -> VirtualServer:
    server = VirtualServer({"a": 1}, settings=SETTINGS, partitions=1)
    server.ask(server.commit_command("g", "", None, "a", {0: 5}))
    server.crash()
    server.scheduler.wall_offset_ms += silent_ms
    server.start()
    return server


@pytest.mark.parametrize("silent_ms", [SILENCE_MS, 30 * SILENCE_MS, 50_000 * SILENCE_MS])
def test_nothing_expires_at_once_after_a_silence(silent_ms: int) -> None:
    """The server was down for long, was restored from an old backup, or its clock is wrong."""
    server = make_silent_server(silent_ms)
    server.advance(MINUTE_MS - INTERVAL_MS)
    assert kept(server) == ["a"]
    server.restart()
    server.advance(1)
    assert kept(server) == ["a"], "a restart does not end it"
    server.advance(INTERVAL_MS)
    assert kept(server) == [], "one retention after the first start"


def test_a_clock_that_was_ahead_and_is_right_again_expires_nothing() -> None:
    server = make_silent_server(50_000 * SILENCE_MS)
    server.ask(server.commit_command("h", "", None, "a", {0: 5}))
    server.crash()
    server.scheduler.wall_offset_ms -= 50_000 * SILENCE_MS
    server.start()
    server.advance(10 * MINUTE_MS)
    assert kept(server) == ["a", "a"]


def test_a_short_silence_is_like_none() -> None:
    server = make_silent_server(SILENCE_MS - 1)
    server.advance(INTERVAL_MS)
    assert kept(server) == []


def test_what_is_known_of_producers_outlives_a_silence() -> None:
    server = VirtualServer({"a": 1}, settings=SETTINGS, partitions=1)
    offsets = (TopicOffsets(TopicName("a"), None, make_offset_columns([(0, 5, -1, "")])),)
    server.ask(TxnOffsetCommit(CALLER, GroupId("g"), ProducerId(7), 3, offsets))
    server.ask(WriteTxnMarkers(CALLER, LogPartition(0), ProducerId(7), 3, 0, committed=True))
    assert 7 in server.runtime.shards[0].producers
    server.crash()
    server.scheduler.wall_offset_ms += 30 * SILENCE_MS
    server.start()
    server.advance(10 * MINUTE_MS)
    assert 7 in server.runtime.shards[0].producers
    server.advance(SILENCE_MS)
    assert 7 not in server.runtime.shards[0].producers


def test_expiry_can_be_switched_off() -> None:
    settings = replace(SETTINGS, offsets_expiry="off")
    server = make_server(make_log(group_record(EMPTY_LONG_AGO), commit("a", OLD_MS)), settings)
    server.advance(10 * MINUTE_MS)
    assert kept(server) == ["a"]


def test_a_commit_between_the_look_and_the_decision_is_not_lost() -> None:
    """The walk is inside a large group when the offsets it has read are committed again."""
    records = [
        (OffsetCommitKey(GroupId("g"), TopicName("a"), n), commit("a", OLD_MS)[1])
        for n in range(SLICE + 50)
    ]
    # Nothing is decided before the whole group was seen: half of it is not past its time.
    records[1::2] = [(key, commit("a", START_WALL_MS)[1]) for key, _ in records[1::2]]
    server = make_server(make_log(*records))
    server.create("a", 1)
    server.advance(INTERVAL_MS)
    assert server.runtime.stats.offsets_expired == 0
    server.submit(server.commit_command("g", "", None, "a", {0: 9}))
    server.advance(INTERVAL_MS)
    assert server.fetch("g", "a", 0) == 9
    assert server.runtime.stats.offsets_expired == len(records) // 2 - 1


def test_a_group_of_many_offsets_goes_in_slices_and_the_group_with_the_last() -> None:
    records = [
        (OffsetCommitKey(GroupId("g"), TopicName("a"), n), commit("a", OLD_MS)[1])
        for n in range(2 * SLICE + 10)
    ]
    server = make_server(make_log(group_record(EMPTY_LONG_AGO), *records))
    before = server.store.next_offset(LogPartition(0))
    server.advance(INTERVAL_MS + 1_000)
    assert kept(server) == []
    assert groups(server) == []
    assert server.store.next_offset(LogPartition(0)) == before + len(records) + 1
    assert server.runtime.stats.groups_expired == 1


def test_a_store_that_stalls_is_asked_again() -> None:
    log = make_log(commit("a", OLD_MS))
    server = make_server(log)
    write, refusals = server.store.write, iter([True] * 20)

    def refuse(appends: object, side: object = (), causes: object = ()) -> None:
        if next(refusals, False):
            raise StoreStalled("later")
        write(appends, side, causes)  # type: ignore[arg-type]

    server.store.write = refuse  # type: ignore[method-assign]
    server.advance(INTERVAL_MS + 1_000)
    assert kept(server) == []


def test_the_records_are_those_of_a_restart() -> None:
    """Expired offsets and groups are removed from memory as from the log."""
    server = make_server(make_log(group_record(EMPTY_LONG_AGO), commit("a", OLD_MS)))
    server.advance(INTERVAL_MS)
    (shard,) = server.runtime.shards
    assert (shard.classic_groups, shard.offset_groups) == ({}, set())
    server.restart()
    (shard,) = server.runtime.shards
    assert (shard.classic_groups, shard.offset_groups) == ({}, set())


def test_a_removed_group_leaves_no_record() -> None:
    server = VirtualServer({"foo": 2}, settings=SETTINGS, partitions=1)
    server.join("g", "a", ["foo"])
    server.leave("g", "a")
    server.advance(INTERVAL_MS)
    assert groups(server) == []
    assert list(server.store.latest(LogPartition(0))) == []


def test_what_waits_for_markers_is_known_and_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: each slice of a walk read all pending offsets of the log partition."""
    server = VirtualServer({"foo": 4}, settings=SETTINGS)
    server.ask(server.commit_command("g", "", None, "foo", {0: 1}))
    offsets = (TopicOffsets(TopicName("foo"), None, make_offset_columns([(1, 5, -1, "")])),)
    server.ask(TxnOffsetCommit(CALLER, GroupId("g"), ProducerId(7), 3, offsets))
    read = 0
    pending = server.store.pending

    def count(*where: int) -> object:
        nonlocal read
        read += 1
        return pending(*where)  # type: ignore[arg-type]

    monkeypatch.setattr(server.store, "pending", count)
    server.advance(MINUTE_MS + 2 * INTERVAL_MS)
    assert server.fetch("g", "foo", 0) == -1
    assert server.runtime._shard_of(GroupId("g")).open_transactions.has_group(GroupId("g"))
    assert read <= 2, "by the batch of the tombstone, and by the check of what is written"


def test_a_walk_that_is_held_for_want_of_space_keeps_no_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cursor pins files that compaction has replaced: the space that the walk waits for."""
    settings = replace(SETTINGS, log_min_free_bytes=100)
    server = VirtualServer({"a": 1}, settings=settings, partitions=1)
    for number in range(400):
        server.ask(server.commit_command(f"g{number}", "", None, "a", {0: 5}))
    open_walks = 0
    walk = server.store.offset_group_ids

    def noting(partition: LogPartition) -> Iterator[GroupId]:
        nonlocal open_walks
        open_walks += 1
        try:
            yield from walk(partition)
        finally:
            open_walks -= 1

    monkeypatch.setattr(server.store, "offset_group_ids", noting)
    monkeypatch.setattr(expiry_walks, "SLICE", 1)
    for _ in range(20):
        server.advance(INTERVAL_MS // 20)
        if open_walks:
            break
    assert open_walks == 1
    server.runtime._around.space._free_bytes = lambda: 10
    server.advance(1_500)
    assert open_walks == 0
    server.runtime._around.space._free_bytes = lambda: 1_000
    server.advance(2 * MINUTE_MS)
    assert kept(server) == []
