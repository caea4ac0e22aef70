"""All offsets of a deleted topic are deleted, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from coordinator.runtime.loop.slices import REFUSED_RETRY_MS
from coordinator.runtime.offsets import offset_reads
from coordinator.runtime.offsets.offset_reads import StoredOffset, read_highest_offsets
from coordinator.runtime.topics import topic_deletion
from coordinator.runtime.topics.topic_deletion import TopicDeletion
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets, TopicToFetch
from model.commands.topics import CreateTopic, DeleteTopic
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue
from model.log.side_records import TopicDeletionValue
from model.responses.offsets import OffsetCommitResponse, OffsetFetchResponse
from storage.codec.record_codec import encode_key, encode_value
from storage.log_store import StoreStalled
from tests.support.free_space import set_free_space
from tests.support.offsets import read_group_offsets
from tests.support.storage.appends import append, mark_all
from tests.support.virtual.server import CALLER, VirtualServer, error_name, make_topic_id

FOO = TopicName("foo")
DELETE_FOO = DeleteTopic(INTERNAL, FOO)


def stored(server: VirtualServer) -> dict[tuple[str, str, int], int]:
    """All committed offsets in the store."""
    return {
        (group_id, offset.topic, offset.partition): offset.value.offset
        for number in range(server.store.partitions)
        for group_id in server.store.offset_group_ids(LogPartition(number))
        for offset in read_group_offsets(server.store, LogPartition(number), group_id)
    }


def busy_server(*commands: Command) -> VirtualServer:
    """A sync of another group is in flight when the commands come: they are only gathered."""
    server = VirtualServer({"foo": 2, "bar": 2})
    server.ask(server.commit_command("g", "", None, "bar", {0: 7}))
    server.scheduler.blocking_ms = lambda: 10
    server.submit(server.commit_command("other", "", None, "bar", {0: 1}))
    server.advance(1)
    for command in commands:
        server.submit(command)
    return server


def test_a_deleted_topic_loses_its_offsets_and_others_keep_theirs() -> None:
    server = VirtualServer({"foo": 2, "bar": 2})
    server.ask(server.commit_command("g", "", None, "foo", {0: 5, 1: 6}))
    server.ask(server.commit_command("g", "", None, "bar", {1: 8}))
    assert error_name(server.ask(DELETE_FOO)) == "NONE"
    assert stored(server) == {("g", "bar", 1): 8}
    assert server.fetch("g", "bar", 1) == 8
    assert list(server.store.side(b"\x03")) == []


def test_an_offset_that_was_not_written_yet_when_its_topic_was_deleted_goes_too() -> None:
    """Bug: the walk read the store before the write, and the offset was never deleted."""
    server = busy_server()
    commit = server.submit(server.commit_command("g", "", None, "foo", {0: 5}))
    server.submit(DELETE_FOO)
    server.advance(1_000)
    assert error_name(commit.answer) == "NONE"
    assert stored(server) == {("g", "bar", 0): 7, ("other", "bar", 0): 1}


def test_an_offset_of_a_new_topic_of_the_same_name_that_was_not_written_yet_stays() -> None:
    """Bug: a tombstone for the old offset in the store followed the new one in the log."""
    server = VirtualServer({"foo": 2})
    server.ask(server.commit_command("g", "", None, "foo", {0: 5}))
    server.scheduler.blocking_ms = lambda: 10
    server.submit(server.commit_command("other", "", None, "foo", {1: 1}))
    server.advance(1)
    server.submit(DELETE_FOO)
    server.submit(CreateTopic(INTERNAL, FOO, make_topic_id("foo", 9), 2))
    commit = server.submit(server.commit_command("g", "", None, "foo", {0: 9}))
    server.advance(1_000)
    assert error_name(commit.answer) == "NONE"
    assert stored(server) == {("g", "foo", 0): 9}


def test_a_group_with_an_offset_that_was_not_written_yet_is_not_taken_for_empty() -> None:
    """Bug: a fetch then returned -1 for a committed offset, until a restart."""
    server = VirtualServer({"foo": 2, "bar": 2})
    server.ask(server.commit_command("g", "", None, "foo", {0: 5}))
    server.scheduler.blocking_ms = lambda: 10
    server.submit(DELETE_FOO)
    server.advance(19)
    # The tombstone is being synced now; when that is back, this is gathered, not written.
    commit = server.submit(server.commit_command("g", "", None, "bar", {0: 3}))
    server.advance(1_000)
    assert error_name(commit.answer) == "NONE"
    server.scheduler.blocking_ms = lambda: 0
    assert server.fetch("g", "bar", 0) == 3


def test_a_deletion_goes_on_after_a_crash() -> None:
    """Trigger: the topic's deletion is durable, the tombstones of its offsets are not."""
    server = VirtualServer({"foo": 2, "bar": 2})
    server.ask(server.commit_command("g", "", None, "foo", {0: 5}))
    server.scheduler.blocking_ms = lambda: 10
    deletion = server.submit(DELETE_FOO)
    server.advance(10)
    assert deletion.is_answered
    server.crash()
    assert stored(server) == {("g", "foo", 0): 5}
    server.scheduler.blocking_ms = lambda: 0
    server.start()
    server.advance(1_000)
    assert stored(server) == {}
    assert list(server.store.side(b"\x03")) == []


def commit_in_transaction(server: VirtualServer, producer: int, partition: int, ends: bool) -> None:
    """Commit an offset without a topic id, as transactions do; if it ``ends``, with a marker."""
    producer_id, group_id = ProducerId(producer), GroupId("g")
    offsets = (TopicOffsets(FOO, None, make_offset_columns([(partition, 9, -1, "")])),)
    server.ask(TxnOffsetCommit(CALLER, group_id, producer_id, 0, offsets))
    if ends:
        where = server.runtime.partition_of(group_id)
        server.ask(WriteTxnMarkers(CALLER, where, producer_id, 0, 0, committed=True))


def test_a_deletion_that_goes_on_after_a_crash_leaves_transactions_of_a_new_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bug: their offsets have no topic id, and were taken for those of the deleted topic."""
    server = VirtualServer({"foo": 4})
    commit_in_transaction(server, 1, 0, ends=True)
    commit_in_transaction(server, 2, 1, ends=False)
    # The walk over all offsets does not get on before the crash.
    with monkeypatch.context() as patch:
        patch.setattr(TopicDeletion, "_delete", lambda self, walk: iter(()))
        server.ask(DELETE_FOO)
        server.advance(1)
        server.create("foo", 4)
        commit_in_transaction(server, 3, 2, ends=True)
        commit_in_transaction(server, 4, 3, ends=False)
        server.crash()
    server.start()
    server.advance(1_000)
    assert stored(server) == {("g", "foo", 2): 9}
    where = server.runtime.partition_of(GroupId("g"))
    assert [producer for producer, _ in server.store.pending(where)] == [4]
    assert list(server.store.side(b"\x03")) == []


def pause_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the walk over all offsets."""
    monkeypatch.setattr(TopicDeletion, "_delete", lambda self, walk: iter(()))


def fetched(server: VirtualServer, *topics: TopicToFetch) -> dict[tuple[str, int], int]:
    """The response to a fetch of these topics, or of all topics if none is named."""
    answer = server.ask(OffsetFetch(CALLER, GroupId("g"), topics or None))
    assert isinstance(answer, OffsetFetchResponse), repr(answer)
    return {
        (str(topic.name), row.partition): row.offset
        for topic in answer.topics
        for row in topic.partitions
    }


def test_a_topic_that_is_created_again_has_no_offset_of_the_deleted_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bug: fetches by name returned the old topic's offset until the walk had reached it.

    A consumer of the new topic would start there and skip the records before it.
    """
    pause_deletions(monkeypatch)
    many = 2 * offset_reads.SLICE
    server = VirtualServer({"foo": many, "bar": 1})
    server.ask(server.commit_command("g", "", None, "foo", {0: 1_000_000, 1: 1_000_000}))
    server.ask(server.commit_command("g", "", None, "bar", {0: 3}))
    commit_in_transaction(server, 1, 2, ends=True)
    first_id = server.topic("foo")
    server.ask(DELETE_FOO)
    assert fetched(server) == {("bar", 0): 3}
    server.advance(1)
    server.create("foo", many)
    by_name = TopicToFetch(FOO, None, (0, 1, 2))
    by_id = TopicToFetch(None, server.topic("foo"), (0, 1, 2))
    nothing = {("foo", 0): -1, ("foo", 1): -1, ("foo", 2): -1}
    assert fetched(server, by_name) == fetched(server, by_id) == nothing
    assert set(fetched(server, TopicToFetch(FOO, None, tuple(range(many)))).values()) == {-1}
    assert fetched(server) == {("bar", 0): 3}
    # What is committed for the new topic is there, whatever is left of the old one.
    server.ask(server.commit_command("g", "", None, "foo", {1: 5}))
    commit_in_transaction(server, 2, 2, ends=True)
    now = {("foo", 0): -1, ("foo", 1): 5, ("foo", 2): 9}
    assert fetched(server, by_name) == fetched(server, by_id) == now
    assert fetched(server) == {("foo", 1): 5, ("foo", 2): 9, ("bar", 0): 3}
    server.restart()
    assert fetched(server, by_name) == now
    late = OffsetCommit(
        CALLER,
        GroupId("g"),
        MemberId(""),
        None,
        (TopicOffsets(None, first_id, make_offset_columns([(0, 1_000_001, -1, "")])),),
    )
    answer = server.ask(late)
    assert isinstance(answer, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error is ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_topic_that_is_created_again_ends_not_where_the_deleted_one_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bug: lost partition ends were raised to the old topic's offsets.

    Offsets committed for the new topic must be below its partition ends.
    """
    pause_deletions(monkeypatch)
    server = VirtualServer({"foo": 2, "bar": 1})
    server.ask(server.commit_command("g", "", None, "foo", {0: 1_000_000, 1: 1_000_000}))
    server.ask(server.commit_command("g", "", None, "bar", {0: 3}))
    server.ask(DELETE_FOO)
    server.create("foo", 2)
    server.ask(server.commit_command("g", "", None, "foo", {1: 5}))
    server.restart()
    runtime = server.runtime
    highest = await read_highest_offsets(server.store, runtime.shards, runtime.deleted_topics)
    assert highest == {("foo", 1): 5, ("bar", 0): 3}


def test_an_offset_is_not_hidden_by_a_deletion_that_is_not_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pause_deletions(monkeypatch)
    server = VirtualServer({"foo": 1})
    server.ask(server.commit_command("g", "", None, "foo", {0: 5}))
    commit_in_transaction(server, 1, 0, ends=True)
    server.scheduler.blocking_ms = lambda: 10
    server.submit(DELETE_FOO)
    before = server.submit(server.fetch_command("g", "foo", (0,)))
    server.advance(1)
    server.crash()
    server.start()
    answer = before.answer
    assert isinstance(answer, OffsetFetchResponse)
    assert answer.topics[0].partitions[0].offset == server.fetch("g", "foo", 0) == 9


def test_a_second_deletion_that_is_not_durable_hides_nothing_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bug: if the topic was created again in between, the first deletion counted as durable."""
    pause_deletions(monkeypatch)
    server = VirtualServer({"foo": 1})
    commit_in_transaction(server, 1, 0, ends=True)
    server.advance(1)
    server.scheduler.blocking_ms = lambda: 10
    server.submit(DELETE_FOO)
    server.submit(CreateTopic(INTERNAL, FOO, make_topic_id("foo", 9), 1))
    server.submit(DELETE_FOO)
    before = server.submit(server.fetch_command("g", "foo", (0,)))
    server.advance(1)
    server.crash()
    server.start()
    answer = before.answer
    assert isinstance(answer, OffsetFetchResponse)
    assert answer.topics[0].partitions[0].offset == server.fetch("g", "foo", 0) == 9


def put(server: VirtualServer, *values: OffsetCommitValue | LegacyOffsetCommitValue) -> None:
    """Import offsets of partitions from 0 on, written by another cluster."""
    pairs = [
        (encode_key(OffsetCommitKey(GroupId("g"), FOO, partition)), encode_value(value))
        for partition, value in enumerate(values)
    ]
    append(server.store, {server.runtime.partition_of(GroupId("g")): pairs})
    mark_all(server.store)
    server.restart()


def test_offsets_of_an_imported_log_count_whatever_their_topic_ids() -> None:
    """Trigger: the topic was created here with another id, or the log has no topic ids."""
    server = VirtualServer({"foo": 4})
    elsewhere = make_topic_id("elsewhere")
    put(
        server,
        OffsetCommitValue(5, -1, "", 0, -1, elsewhere),
        OffsetCommitValue(6, -1, "", 0),
        LegacyOffsetCommitValue(7, "", 0),
    )
    assert [server.fetch("g", "foo", partition) for partition in range(3)] == [5, 6, 7]
    # Deleted with the topic that has the name here they go, all of them.
    server.ask(DELETE_FOO)
    server.create("foo", 4)
    assert [server.fetch("g", "foo", partition) for partition in range(3)] == [-1, -1, -1]
    assert stored(server) == {}


def commit_waiting(server: VirtualServer, producer: int, offset: int) -> None:
    """Commit an offset of partition 0 in a transaction that stays open."""
    offsets = (TopicOffsets(FOO, None, make_offset_columns([(0, offset, -1, "")])),)
    answer = server.ask(TxnOffsetCommit(CALLER, GroupId("g"), ProducerId(producer), 0, offsets))
    assert isinstance(answer, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error is ErrorCode.NONE


def mark(server: VirtualServer, producer: int, *, committed: bool) -> None:
    """End the producer's transaction, and let the walk check again."""
    where = server.runtime.partition_of(GroupId("g"))
    marker = WriteTxnMarkers(CALLER, where, ProducerId(producer), 0, 0, committed=committed)
    assert error_name(server.ask(marker)) == "NONE"
    server.advance(2 * REFUSED_RETRY_MS)


def delete_and_create(server: VirtualServer, monkeypatch: pytest.MonkeyPatch, *new: int) -> None:
    """Start the walk once the new topic has offsets: for 0 a committed one, else a pending one."""
    with monkeypatch.context() as patch:
        pause_deletions(patch)
        server.ask(DELETE_FOO)
        server.create("foo", 1)
        for producer in new:
            if producer:
                commit_waiting(server, producer, 9)
            else:
                server.ask(server.commit_command("g", "", None, "foo", {0: 9}))
        server.crash()
    server.start()
    server.advance(2 * REFUSED_RETRY_MS)


def deletion_marks(server: VirtualServer) -> int:
    return len(list(server.store.side(b"\x03")))


@pytest.mark.parametrize("committed", [True, False])
def test_the_tombstone_of_an_old_offset_waits_for_a_transaction_of_the_new_topic(
    monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """Bug: it removed the pending offset under the key, and an acknowledged commit was lost."""
    server = VirtualServer({"foo": 1})
    server.ask(server.commit_command("g", "", None, "foo", {0: 1_000_000}))
    delete_and_create(server, monkeypatch, 2)
    assert (server.fetch("g", "foo", 0), deletion_marks(server)) == (-1, 1)
    server.restart()
    server.advance(2 * REFUSED_RETRY_MS)
    assert (server.fetch("g", "foo", 0), deletion_marks(server)) == (-1, 1)
    mark(server, 2, committed=committed)
    assert stored(server) == ({("g", "foo", 0): 9} if committed else {})
    assert (server.fetch("g", "foo", 0), deletion_marks(server)) == (9 if committed else -1, 0)


@pytest.mark.parametrize("committed", [True, False])
def test_the_tombstone_of_an_old_pending_offset_leaves_a_committed_one_of_the_new_topic(
    monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """Bug: it removed the committed offset under the key."""
    server = VirtualServer({"foo": 1})
    commit_waiting(server, 1, 1_000_000)
    delete_and_create(server, monkeypatch, 0)
    assert (server.fetch("g", "foo", 0), deletion_marks(server)) == (9, 1)
    mark(server, 1, committed=committed)
    assert stored(server) == {("g", "foo", 0): 9}
    assert (server.fetch("g", "foo", 0), deletion_marks(server)) == (9, 0)


@pytest.mark.parametrize("is_old_first", [True, False])
@pytest.mark.parametrize("is_old_committed", [True, False])
@pytest.mark.parametrize("is_new_committed", [True, False])
def test_of_two_transactions_the_one_of_the_new_topic_counts(
    monkeypatch: pytest.MonkeyPatch,
    is_old_first: bool,
    is_old_committed: bool,
    is_new_committed: bool,
) -> None:
    server = VirtualServer({"foo": 1})
    commit_waiting(server, 1, 1_000_000)
    delete_and_create(server, monkeypatch, 2)
    assert (server.fetch("g", "foo", 0), deletion_marks(server)) == (-1, 1)
    if is_old_first:
        mark(server, 1, committed=is_old_committed)
        assert server.fetch("g", "foo", 0) == -1
    mark(server, 2, committed=is_new_committed)
    assert server.fetch("g", "foo", 0) == (9 if is_new_committed else -1)
    if not is_old_first:
        mark(server, 1, committed=is_old_committed)
    assert server.fetch("g", "foo", 0) == (9 if is_new_committed else -1)
    assert stored(server) == ({("g", "foo", 0): 9} if is_new_committed else {})
    assert deletion_marks(server) == 0


def test_a_deletion_that_waits_for_a_marker_ends_when_the_transaction_times_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = CoordinatorSettings()
    server = VirtualServer({"foo": 1}, settings=settings)
    server.ask(server.commit_command("g", "", None, "foo", {0: 1_000_000}))
    delete_and_create(server, monkeypatch, 2)
    assert deletion_marks(server) == 1
    server.advance(2 * settings.transaction_max_timeout_ms)
    assert (stored(server), deletion_marks(server)) == ({}, 0)


def test_what_a_transaction_commits_in_the_millisecond_of_the_deletion_is_told_by_the_log() -> None:
    """Bug: without a topic id it went with the old topic; timestamps cannot tell them apart."""
    server = VirtualServer({"foo": 2})
    old = (TopicOffsets(FOO, None, make_offset_columns([(1, 5, -1, "")])),)
    new = (TopicOffsets(FOO, None, make_offset_columns([(0, 9, -1, "")])),)
    where = server.runtime.partition_of(GroupId("g"))
    server.submit(TxnOffsetCommit(CALLER, GroupId("g"), ProducerId(1), 0, old))
    server.submit(WriteTxnMarkers(CALLER, where, ProducerId(1), 0, 0, committed=True))
    server.submit(DELETE_FOO)
    server.submit(CreateTopic(INTERNAL, FOO, make_topic_id("foo", 9), 2))
    server.submit(TxnOffsetCommit(CALLER, GroupId("g"), ProducerId(2), 0, new))
    marker = server.submit(WriteTxnMarkers(CALLER, where, ProducerId(2), 0, 0, committed=True))
    server.advance(1_000)
    assert error_name(marker.answer) == "NONE"
    assert stored(server) == {("g", "foo", 0): 9}


def test_an_imported_offset_that_is_dated_ahead_goes_with_its_topic() -> None:
    """Bug: an offset without a topic id, dated in the future, outlived its topic."""
    server = VirtualServer({"foo": 2})
    ahead_ms = server.scheduler.wall_ms() + 60_000
    put(server, LegacyOffsetCommitValue(7, "", ahead_ms), OffsetCommitValue(8, -1, "", ahead_ms))
    server.ask(DELETE_FOO)
    server.create("foo", 2)
    assert [server.fetch("g", "foo", partition) for partition in range(2)] == [-1, -1]
    assert stored(server) == {}


def test_a_topic_is_not_deleted_while_the_store_stalls() -> None:
    """The ends of its log partitions are unknown then."""
    server = busy_server()
    server.submit(server.commit_command("g", "", None, "foo", {0: 5}))
    write = server.store.write

    def stalling_write(*arguments: object) -> None:
        raise StoreStalled("busy")

    server.store.write = stalling_write  # type: ignore[assignment,method-assign]
    refused = server.submit(DELETE_FOO)
    server.store.write = write  # type: ignore[method-assign]
    server.advance(1_000)
    assert error_name(refused.answer) == "COORDINATOR_NOT_AVAILABLE"
    assert "foo" in server.runtime.image.by_name
    assert server.fetch("g", "foo", 0) == 5


def test_a_deletion_of_which_the_time_is_not_known_takes_what_has_no_topic_id() -> None:
    """The deletion marker is from an earlier version."""
    server = VirtualServer({"foo": 4})
    commit_in_transaction(server, 1, 0, ends=True)
    deletion = TopicDeletionValue(FOO, 0)
    server.runtime.parts.catalogue._state.deleted[make_topic_id("foo")] = deletion
    server.runtime.parts.background.delete_offsets_of_topics()
    server.settle()
    assert stored(server) == {}


def test_a_deletion_waits_for_a_store_that_stalls() -> None:
    server = busy_server()
    server.submit(server.commit_command("g", "", None, "foo", {0: 5}))
    server.submit(DELETE_FOO)
    write = server.store.write
    stalls = iter([True] * 3)

    def stalling_write(*arguments: object) -> None:
        if next(stalls, False):
            raise StoreStalled("busy")
        write(*arguments)  # type: ignore[arg-type]

    server.store.write = stalling_write  # type: ignore[assignment,method-assign]
    server.advance(1_000)
    assert next(stalls, "used up") == "used up"
    assert stored(server) == {("g", "bar", 0): 7, ("other", "bar", 0): 1}


def test_more_offsets_than_one_slice_go() -> None:
    server = VirtualServer({"foo": 1_201})
    server.ask(server.commit_command("g", "", None, "foo", dict.fromkeys(range(1_201), 1)))
    server.ask(DELETE_FOO)
    assert stored(server) == {}


def test_what_waits_for_markers_is_walked_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: all pending offsets, of all log partitions, were read in one iteration."""
    monkeypatch.setattr(topic_deletion, "SLICE", 5)
    server = VirtualServer({"foo": 2, "bar": 50}, partitions=3)
    for number in range(4):
        offsets = make_offset_columns((partition, 1, -1, "") for partition in range(50))
        bar = TopicOffsets(TopicName("bar"), None, offsets)
        server.ask(TxnOffsetCommit(CALLER, GroupId(f"g{number}"), ProducerId(7), 0, (bar,)))
    turn, read, pending = 0, Counter[int](), server.store.pending

    def count(*which: Any) -> Iterator[Any]:
        for each in pending(*which):
            read[turn] += 1
            yield each

    monkeypatch.setattr(server.store, "pending", count)
    server.submit(DELETE_FOO)
    for turn in range(100):  # noqa: B007 - counted above
        server.scheduler.take_turn(1)
    assert read.total() == 200
    assert max(read.values()) <= 6
    assert list(server.store.side(b"\x03")) == []


def test_tombstones_refused_for_want_of_space_come_when_there_is_space() -> None:
    """Bug: a refusal that came late was not counted, and the deletion was forgotten."""
    server = VirtualServer(
        {"foo": 2, "bar": 2}, settings=CoordinatorSettings(log_min_free_bytes=100)
    )
    server.ask(server.commit_command("g", "", None, "foo", {0: 5}))
    free = 1_000
    set_free_space(server.runtime, lambda: free, 100)
    server.scheduler.blocking_ms = lambda: 2_000
    server.submit(server.join_command("g", "a", ["bar"]))
    server.submit(DELETE_FOO)
    set_free_space(server.runtime, lambda: free, 100)
    free = 10
    server.advance(10_000)
    assert server.runtime.stats.writes_refused > 0
    free = 1_000
    server.advance(20_000)
    assert stored(server) == {}
    assert list(server.store.side(b"\x03")) == []


def test_topics_that_are_deleted_together_share_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: the offsets of all groups were walked over once for each topic."""
    names = [f"t{number}" for number in range(20)]
    server = VirtualServer(dict.fromkeys(names, 1))
    for name in names:
        server.ask(server.commit_command("g", "", None, name, {0: 5}))
    walks = 0
    walk = TopicDeletion._walk

    def note(deletion: TopicDeletion) -> Iterator[StoredOffset]:
        nonlocal walks
        walks += 1
        return walk(deletion)

    monkeypatch.setattr(TopicDeletion, "_walk", note)
    for name in names:
        server.submit(DeleteTopic(INTERNAL, TopicName(name)))
    server.advance(1_000)
    assert stored(server) == {}
    assert not server.runtime.parts.catalogue.deleted
    # The first has begun when the others come.
    assert walks <= 2


def test_a_topic_that_is_deleted_while_others_are_walked_for_has_a_walk_of_its_own() -> None:
    server = VirtualServer({"foo": 1, "bar": 1})
    for name in ("foo", "bar"):
        server.ask(server.commit_command("g", "", None, name, {0: 5}))
    deletion = server.runtime.parts.background._deletion
    server.submit(DELETE_FOO)
    while not deletion._is_walking:
        server.scheduler.step()
    server.submit(DeleteTopic(INTERNAL, TopicName("bar")))
    server.advance(1_000)
    assert stored(server) == {}
    assert not deletion._running
