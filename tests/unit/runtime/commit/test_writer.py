"""The writer in the runtime: what is written together, and when responses are released."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from coordinator.runtime.commit.entries import Entry
from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL
from model.commands.consumer import ConsumerGroupLeave
from model.commands.groups import ConsumerGroupDescribe, ListGroups
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import CoordinatorNotAvailable
from model.ids import GroupId, LogOffset, LogPartition, MemberId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import OffsetCommitKey, Record
from storage.codec.batches import read_batch_header
from storage.log_store import PartitionAppend, StoreFailed, StoreStalled
from tests.support.memory import MemoryLogStore
from tests.support.targets_in_threads import never_quick
from tests.support.virtual.server import CALLER, VirtualServer, error_name, make_topic_id

FOO = TopicName("foo")


def test_a_heartbeat_that_waits_for_a_target_during_a_sync_is_answered() -> None:
    """Bug: a flush request was lost while a sync was in flight and nothing was gathered."""
    server = VirtualServer({"foo": 2})
    server.scheduler.blocking_ms = lambda: 10
    server.scheduler.computing_ms = lambda: 25
    never_quick(server.runtime)
    joined = server.submit(server.join_command("g", "a", ["foo"]))
    server.advance(10)
    assert joined.is_answered
    committing = server.submit(server.commit_command("other", "", None, "foo", {0: 1}))
    server.advance(1)
    beating = server.submit(server.heartbeat("g", "a", 1))
    server.advance(12)
    assert committing.is_answered
    assert beating.is_answered
    assert error_name(beating.answer) == "NONE"


def test_a_record_that_cannot_be_encoded_ends_the_process() -> None:
    """Bug: the records stayed gathered, every later flush failed, and no client was answered."""
    server = VirtualServer({"foo": 2})
    entry = Entry(LogPartition(0), (Record(OffsetCommitKey(GroupId("x" * 40_000), FOO, 0), None),),
                  (), None, None)  # fmt: skip
    server.runtime.parts.writer.append(entry)
    server.settle()
    assert len(server.failures) == 1


# --------------------------------------------------------------------------------- answers, syncs


def slow(topics: dict[str, int] | None = None, **settings: int) -> VirtualServer:
    """A member a@2 of g; from now on a sync takes 10 ms."""
    server = VirtualServer(topics or {"foo": 4}, settings=CoordinatorSettings(**settings))  # type: ignore[arg-type]
    server.join("g", "a", ["foo"])
    server.scheduler.blocking_ms = lambda: 10
    return server


def test_nothing_is_answered_before_it_is_synced() -> None:
    server = slow()
    pending = [
        server.submit(server.commit_command("g", "a", 2, "foo", {0: 1})),
        server.submit(server.join_command("g", "b", ["foo"])),
        server.submit(ConsumerGroupLeave(CALLER, GroupId("g"), MemberId("a"))),
        server.submit(CreateTopic(INTERNAL, TopicName("bar"), make_topic_id("bar"), 1)),
    ]
    server.advance(9)
    assert server.store.unsynced_writes == 1
    assert not any(answer.is_answered for answer in pending)
    assert TopicName("bar") not in server.runtime.image.by_name
    server.advance(1)
    assert all(answer.is_answered for answer in pending)
    assert TopicName("bar") in server.runtime.image.by_name


def test_what_comes_during_a_sync_is_left_to_the_next() -> None:
    server = slow()
    first = server.submit(server.commit_command("g", "a", 2, "foo", {0: 1}))
    server.advance(5)
    second = server.submit(server.commit_command("g", "a", 2, "foo", {1: 1}))
    server.advance(5)
    assert first.is_answered
    assert not second.is_answered
    server.advance(10)
    assert second.is_answered


def test_one_sync_is_in_flight_at_a_time() -> None:
    server = slow()
    syncs = []
    sync = server.store.sync

    def counting() -> None:
        syncs.append(server.scheduler.now_ms)
        sync()

    server.store.sync = counting  # type: ignore[method-assign]
    for offset in range(30):
        server.submit(server.commit_command("g", "a", 2, "foo", {0: offset}))
        server.advance(1)
    server.advance(20)
    assert [later - earlier for earlier, later in pairwise(syncs)] == [10] * (len(syncs) - 1)
    server.scheduler.blocking_ms = lambda: 0
    assert server.fetch("g", "foo", 0) == 29


def test_a_read_waits_for_the_sync_that_covers_what_it_saw() -> None:
    server = slow()
    server.submit(server.join_command("g", "b", ["foo"]))
    server.advance(1)
    heartbeat = server.submit(server.heartbeat("g", "a", 2))
    describe = server.submit(ConsumerGroupDescribe(CALLER, (GroupId("g"),)))
    refused = server.submit(server.heartbeat("g", "a", 9))
    listing = server.submit(ListGroups(CALLER))
    server.advance(8)
    waiting = [heartbeat, describe, refused, listing]
    assert not any(answer.is_answered for answer in waiting)
    server.advance(12)
    assert all(answer.is_answered for answer in waiting)


def test_a_read_of_what_is_durable_is_answered_at_once() -> None:
    server = slow()
    server.submit(server.join_command("other", "b", ["foo"]))
    server.advance(1)
    assert server.submit(server.heartbeat("g", "a", 2)).is_answered
    assert server.submit(server.heartbeat("g", "a", 9)).is_answered
    assert server.submit(ConsumerGroupDescribe(CALLER, (GroupId("g"),))).is_answered
    assert server.submit(server.fetch_command("g", "foo", (0,))).is_answered


def test_commits_do_not_delay_the_heartbeats_of_their_group() -> None:
    server = slow()
    commit = server.submit(server.commit_command("g", "a", 2, "foo", {0: 1}))
    server.advance(1)
    assert server.submit(server.heartbeat("g", "a", 2)).is_answered
    assert not commit.is_answered


def test_a_fetch_waits_for_a_commit_that_it_may_have_seen() -> None:
    server = slow()
    commit = server.submit(server.commit_command("g", "a", 2, "foo", {0: 1}))
    server.advance(1)
    fetch = server.submit(server.fetch_command("g", "foo", (0,)))
    server.advance(8)
    assert not fetch.is_answered
    server.advance(2)
    assert commit.is_answered
    assert fetch.is_answered


def test_each_answer_comes_once() -> None:
    server = slow()
    pending = [
        server.submit(server.commit_command("g", "a", 2, "foo", {0: offset}))
        for offset in range(20)
    ]
    pending += [server.submit(server.heartbeat("g", "a", 2)) for _ in range(20)]
    server.advance(100)
    assert [len(answer.answers) for answer in pending] == [1] * 40


# --------------------------------------------------------------------------------------- writes


def test_the_records_of_one_command_are_in_one_write() -> None:
    """Trigger: more records than one write should have."""
    server = VirtualServer({"foo": 50}, settings=CoordinatorSettings(flush_records_max=3))
    server.join("g", "a", ["foo"])
    writes: list[tuple[int, int]] = []
    write = server.store.write

    def noting(appends: Sequence[PartitionAppend], side: object = (), causes: object = ()) -> None:
        writes.append((len(appends), sum(append.records for append in appends)))
        write(appends, side, causes)  # type: ignore[arg-type]

    server.store.write = noting  # type: ignore[method-assign]
    server.submit(server.commit_command("g", "a", 2, "foo", dict.fromkeys(range(50), 1)))
    server.submit(server.commit_command("g", "a", 2, "foo", {0: 2}))
    server.submit(server.join_command("g", "b", ["foo"]))
    server.settle()
    # The first commit fills the write, which the second one closes; then a join with its second
    # half: member, epoch, two targets, target, standing.
    assert [records for _, records in writes] == [50 + 1, 6]


def test_a_batch_that_would_be_too_large_is_cut() -> None:
    server = VirtualServer({"foo": 400})
    metadata = "m" * 4_000
    partitions = make_offset_columns((number, 1, -1, metadata) for number in range(400))
    topics = (TopicOffsets(TopicName("foo"), None, partitions),)
    server.ask(OffsetCommit(CALLER, GroupId("g"), MemberId(""), None, topics))
    number = server.runtime.partition_of(GroupId("g"))
    batches = list(server.store.read_log(number))
    assert len(batches) == 2
    assert all(len(batch) <= 1 << 20 for batch in batches)
    assert sum(read_batch_header(batch).count for batch in batches) == 400
    assert server.fetch("g", "foo", 399) == 1


def test_a_stalled_store_is_tried_again_and_nobody_is_answered_meanwhile() -> None:
    server = VirtualServer({"foo": 2})
    write = server.store.write
    stalls = iter([True] * 4)

    def stalling(*arguments: object) -> None:
        if next(stalls, False):
            raise StoreStalled("busy")
        write(*arguments)  # type: ignore[arg-type]

    server.store.write = stalling  # type: ignore[assignment,method-assign]
    commit = server.submit(server.commit_command("g", "", None, "foo", {0: 1}))
    later = server.submit(server.commit_command("g", "", None, "foo", {0: 2}))
    server.settle()
    assert not commit.is_answered
    server.advance(100)
    assert error_name(commit.answer) == error_name(later.answer) == "NONE"
    assert server.failures == []
    assert server.fetch("g", "foo", 0) == 2


@pytest.mark.parametrize("method", ["write", "sync"])
def test_a_failure_is_the_end_and_nobody_is_answered(method: str) -> None:
    """A failed sync is never retried either."""
    server = VirtualServer({"foo": 2})
    calls = []

    def failing(*arguments: object) -> None:
        calls.append(arguments)
        raise StoreFailed("the disk is gone")

    setattr(server.store, method, failing)
    commit = server.submit(server.commit_command("g", "", None, "foo", {0: 1}))
    server.advance(10_000)
    assert not commit.is_answered
    assert [type(failure) for failure in server.failures] == [StoreFailed] * len(calls)
    if method == "sync":
        assert len(calls) == 1


def test_the_watermark_is_marked_before_answers_and_synced_once_a_second() -> None:
    server = slow()
    events: list[str] = []
    mark, sync = server.store.mark_durable, server.store.sync_watermark

    def marking(offsets: Mapping[LogPartition, LogOffset]) -> None:
        events.append("mark")
        mark(offsets)

    def syncing() -> None:
        events.append("watermark")
        sync()

    server.store.mark_durable = marking  # type: ignore[method-assign]
    server.store.sync_watermark = syncing  # type: ignore[method-assign]
    for offset in range(250):
        command = server.commit_command("g", "a", 2, "foo", {0: offset})
        server.runtime.submit(command, lambda _: events.append("answer"))
        server.advance(10)
    server.advance(100)
    assert events.index("mark") < events.index("answer")
    assert events.count("answer") == 250
    assert 2 <= events.count("watermark") <= 4


async def test_stopping_answers_what_was_accepted_and_refuses_the_rest() -> None:
    runtime = Runtime(MemoryLogStore(2), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    create = CreateTopic(INTERNAL, TopicName("foo"), make_topic_id("foo"), 1)
    created = asyncio.ensure_future(runtime.call(create))
    await asyncio.sleep(0)
    await runtime.stop()
    assert (await created).topic.name == "foo"  # type: ignore[union-attr]
    with pytest.raises(CoordinatorNotAvailable):
        await runtime.call(ListGroups(CALLER))
    assert not runtime.ready()
