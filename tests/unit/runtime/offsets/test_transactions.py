"""Transactions in the runtime: batches in the log, large requests, a store that stalls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinator.core.offsets import transactions
from coordinator.core.offsets.producers import LAST_EPOCH
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.offsets import transaction_timeouts
from coordinator.runtime.offsets.transaction_timeouts import GRACE_MS, INTERVAL_MS
from model.caller import INTERNAL
from model.commands.offsets import DeleteOffsets, DeleteTopicOffsets, TopicOffsets
from model.commands.transactions import TxnOffsetCommit
from model.commands.transactions import WriteTxnMarkers as Marker
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode, UnknownServerError
from model.ids import GroupId, LogPartition, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import OffsetCommitKey, OffsetCommitValue
from model.log.side_records import ImportGraceKey, ImportGraceValue, SideRecord
from model.responses.offsets import OffsetFetchResponse
from storage.codec.batches import Batch, decode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log.fold import PartitionFold
from storage.log_store import StoreStalled
from storage.shard_side_codec import encode_producer_prefixes
from storage.side_codec import encode_side
from tests import written
from tests.support.free_space import set_free_space
from tests.support.storage.appends import make_append
from tests.support.virtual.server import CALLER, VirtualServer, error_name

G = GroupId("g")
P0 = LogPartition(0)
PRODUCER = ProducerId(7)


def make_server(partitions: int = 3) -> VirtualServer:
    return VirtualServer({"foo": partitions}, partitions=1)


def pend(
    offsets: dict[int, int], metadata: str = "", epoch: int = 0, group: GroupId = G
) -> TxnOffsetCommit:
    rows = make_offset_columns((p, offset, -1, metadata) for p, offset in offsets.items())
    return TxnOffsetCommit(
        CALLER, group, PRODUCER, epoch, (TopicOffsets(TopicName("foo"), None, rows),)
    )


def end(
    committed: bool = True, partition: LogPartition = P0, epoch: int = 0, version: int = 0
) -> Marker:
    return Marker(CALLER, partition, PRODUCER, epoch, 3, committed, version)


def batches(server: VirtualServer) -> list[Batch]:
    return [decode_batch(batch) for batch in server.store.read_log(P0)]


def fetch_stable(server: VirtualServer, partition: int) -> tuple[int, ErrorCode]:
    command = server.fetch_command("g", "foo", (partition,))
    command.require_stable = True  # type: ignore[misc]
    answer: Any = server.ask(command)
    assert isinstance(answer, OffsetFetchResponse), repr(answer)
    row = answer.topics[0].partitions[0]
    return row.offset, row.error


def test_each_request_and_each_marker_is_a_batch_as_kafka_writes_it() -> None:
    server = make_server()
    for command in (pend({0: 5, 1: 6}), server.commit_command("g", "", None, "foo", {2: 1}), end()):
        server.submit(command)
    server.settle()
    first, plain, marker = batches(server)
    assert (first.is_transactional, first.is_control) == (True, False)
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (7, 0, 0)
    assert [record.value for record in first.records] == [
        encode_value(OffsetCommitValue(offset, -1, "", first.max_timestamp), 4) for offset in (5, 6)
    ]
    assert (plain.is_transactional, plain.producer_id) == (False, -1)
    assert (marker.is_transactional, marker.is_control) == (True, True)
    assert (marker.producer_id, marker.base_offset) == (7, 3)


def test_a_request_that_is_larger_than_a_batch_becomes_several() -> None:
    server = make_server(400)
    assert error_name(server.ask(pend(dict.fromkeys(range(400), 9), "m" * 4_000))) == "NONE"
    found = batches(server)
    assert len(found) == 2
    assert all(batch.size <= 1 << 20 and batch.is_transactional for batch in found)
    assert sum(batch.count for batch in found) == 400
    assert len(list(server.store.pending(P0, 7))) == 400
    server.ask(end())
    assert list(server.store.pending(P0)) == []
    assert [server.fetch("g", "foo", partition) for partition in (0, 399)] == [9, 9]


def test_a_fetch_is_refused_while_the_store_cannot_show_what_a_marker_did() -> None:
    server = make_server()
    server.ask(pend({0: 5}))
    write = server.store.write

    def stall(*arguments: Any) -> None:
        raise StoreStalled("busy")

    server.store.write = stall  # type: ignore[method-assign]
    marker = server.submit(end())
    fetched = server.submit(server.fetch_command("g", "foo", (0,)))
    server.settle()
    assert error_name(fetched.answer) == "COORDINATOR_NOT_AVAILABLE"
    assert not marker.is_answered
    server.store.write = write  # type: ignore[method-assign]
    server.advance(100)
    assert error_name(marker.answer) == "NONE"
    assert fetch_stable(server, 0) == (5, ErrorCode.NONE)


def test_a_marker_for_a_partition_of_the_log_that_is_not_here() -> None:
    server = make_server()
    for number in (1, -1):
        assert error_name(server.ask(end(partition=LogPartition(number)))) == "NOT_COORDINATOR"
    assert batches(server) == []


@pytest.mark.parametrize("restarts", [False, True])
def test_bug_119_a_tombstone_takes_what_waits_with_it(restarts: bool) -> None:
    """Trigger: a pending offset of a deleted topic comes back with its marker."""
    server = make_server()
    server.ask(pend({0: 5, 1: 6}))
    if restarts:
        server.restart()
    server.ask(DeleteTopicOffsets(INTERNAL, G, TopicName("foo"), (0,)))
    assert [entry.key for _, entry in server.store.pending(P0)] == [
        encode_key(OffsetCommitKey(G, TopicName("foo"), 1))
    ]
    assert fetch_stable(server, 0) == (-1, ErrorCode.NONE)
    assert fetch_stable(server, 1) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    server.ask(end())
    assert [server.fetch("g", "foo", partition) for partition in (0, 1)] == [-1, 6]
    assert not server.runtime.shards[0].open_transactions


def test_a_tombstone_asks_the_store_for_nothing_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: each write with a tombstone read all pending offsets of the log partition."""
    server = make_server()
    server.ask(server.commit_command("other", "", None, "foo", {2: 1}))
    server.ask(pend({0: 5, 1: 6}))
    asked: list[Any] = []
    # What compares each write with its meaning reads all of it.
    monkeypatch.setattr(Writer, "_encode", written._encode)
    monkeypatch.setattr(server.store, "pending", lambda *which: asked.append(which) or [])
    other = DeleteTopicOffsets(INTERNAL, GroupId("other"), TopicName("foo"), (2,))
    for command in (other, DeleteTopicOffsets(INTERNAL, G, TopicName("foo"), (0,))):
        assert error_name(server.ask(command)) == "NONE"
    monkeypatch.undo()
    assert asked == []
    assert [entry.key for _, entry in server.store.pending(P0)] == [
        encode_key(OffsetCommitKey(G, TopicName("foo"), 1))
    ]


def test_what_waits_again_in_one_write_after_its_tombstone_stays() -> None:
    """All of it is gathered during one sync; each command names the offsets that it drops."""
    server = make_server()
    server.ask(pend({0: 5, 1: 6}))
    server.scheduler.blocking_ms = lambda: 10
    server.submit(server.commit_command("other", "", None, "foo", {2: 1}))
    server.advance(1)
    server.submit(DeleteTopicOffsets(INTERNAL, G, TopicName("foo"), (0, 1)))
    server.submit(pend({1: 7, 2: 8}))
    server.submit(DeleteTopicOffsets(INTERNAL, G, TopicName("foo"), (2,)))
    server.advance(100)
    assert [(entry.key, entry.offset) for _, entry in server.store.pending(P0)] == [
        (encode_key(OffsetCommitKey(G, TopicName("foo"), 1)), 5)
    ]
    server.submit(pend({0: 9}))
    server.submit(DeleteTopicOffsets(INTERNAL, G, TopicName("foo"), (0,)))
    server.submit(end())
    server.advance(100)
    assert [server.fetch("g", "foo", partition) for partition in (0, 1, 2)] == [-1, 7, -1]
    assert list(server.store.pending(P0)) == []


def test_a_group_with_nothing_but_pending_offsets_is_there_until_they_are_gone() -> None:
    server = make_server()
    server.ask(pend({0: 5}))
    for _ in range(2):
        shard = server.runtime.shards[0]
        assert shard.has_other_group(G)
        assert not shard.offset_groups
        server.restart()
    server.ask(end(committed=False))
    assert not server.runtime.shards[0].has_other_group(G)


def test_a_group_goes_with_its_last_offset_also_while_an_abort_is_being_written() -> None:
    """Bug: the group was listed until the next start."""
    server = make_server()
    server.ask(server.commit_command("g", "", None, "foo", {0: 1}))
    server.ask(pend({1: 5}))
    server.scheduler.blocking_ms = lambda: 10
    server.submit(DeleteOffsets(CALLER, G, ((TopicName("foo"), (0,)),)))
    server.advance(5)
    server.submit(end(committed=False))
    server.advance(100)
    assert G not in server.runtime.shards[0].offset_groups


def test_a_legacy_offset_is_read_as_any_other() -> None:
    """Trigger: a key of type 0 is kept as type 1, with a value of the legacy schema."""
    server = make_server()
    key = encode_key(OffsetCommitKey(G, TopicName("foo"), 1))
    text = b"\x00\x02hi"
    value = b"\x00\x00" + (41).to_bytes(8, "big") + text + (1234).to_bytes(8, "big")
    server.store.write([make_append(0, 0, [(b"\x00\x00" + key[2:], value)])])
    server.store.sync()
    server.restart()
    answer: Any = server.ask(server.fetch_command("g", "foo", (1,)))
    row = answer.topics[0].partitions[0]
    assert (row.offset, row.leader_epoch, row.metadata) == (41, None, "hi")
    everything: Any = server.ask(server.fetch_command("g", "foo", (0, 1, 2)))
    assert [found.offset for found in everything.topics[0].partitions] == [-1, 41, -1]


def test_the_store_is_the_fold_of_what_was_written() -> None:
    server = make_server()
    for command in (pend({0: 1, 1: 1}), end(), pend({0: 2}), end(committed=False), pend({2: 3})):
        server.ask(command)
    fold = PartitionFold()
    for batch in server.store.read_log(P0):
        fold.apply(batch)
    assert list(server.store.latest(P0)) == [fold.latest[key] for key in sorted(fold.latest)]
    assert list(server.store.pending(P0)) == [(7, entry) for entry in fold.pending[7].values()]


TIMEOUT_MS = 120_000


def make_impatient_server(**changes: Any) -> VirtualServer:
    settings = CoordinatorSettings(transaction_max_timeout_ms=TIMEOUT_MS, **changes)
    return VirtualServer({"foo": 3}, partitions=1, settings=settings)


def test_a_transaction_that_nobody_ends_does_not_block_its_group_for_ever() -> None:
    """Bug: an offset accepted without a member and without a transaction stayed pending for ever.

    The log looks as if a coordinator had aborted it: the marker has the producer's next epoch.
    """
    server = make_impatient_server()
    server.ask(server.commit_command("g", "", None, "foo", {0: 7}))
    server.ask(pend({0: 5}))
    server.advance(TIMEOUT_MS // 2)
    server.ask(pend({0: 6}))
    assert fetch_stable(server, 0) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    server.advance(TIMEOUT_MS // 2 - 1_000)
    assert fetch_stable(server, 0) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    server.advance(1_000 + 2 * INTERVAL_MS)
    assert fetch_stable(server, 0) == (7, ErrorCode.NONE)
    marker = batches(server)[-1]
    assert (marker.is_control, marker.is_transactional) == (True, True)
    assert (marker.producer_id, marker.producer_epoch) == (PRODUCER, 1)
    assert error_name(server.ask(pend({0: 8}))) == "INVALID_PRODUCER_EPOCH"
    assert error_name(server.ask(end())) == "INVALID_PRODUCER_EPOCH"
    assert error_name(server.ask(pend({0: 9}, epoch=1))) == "NONE"


def test_restarts_put_the_end_of_a_transaction_off_by_a_minute_at_most() -> None:
    server = make_impatient_server()
    server.ask(pend({0: 5}))
    for _ in range(10):
        server.advance(TIMEOUT_MS // 10)
        server.ask(pend({0: 6}))
        server.restart()
    assert [marker for marker in batches(server) if marker.is_control] == []
    server.advance(GRACE_MS + INTERVAL_MS)
    assert fetch_stable(server, 0) == (-1, ErrorCode.NONE)
    server.restart()
    assert error_name(server.ask(pend({0: 7}))) == "INVALID_PRODUCER_EPOCH"


def test_a_pause_of_the_process_is_not_the_silence_of_the_coordinator() -> None:
    """Its marker may be unread; it is read before the transaction times out."""
    server = make_impatient_server()
    server.ask(pend({0: 5}))
    server.advance(INTERVAL_MS)
    server.scheduler.now_ms += 2 * TIMEOUT_MS
    server.advance(GRACE_MS - 1_000)
    assert error_name(server.ask(end())) == "NONE"
    assert fetch_stable(server, 0) == (5, ErrorCode.NONE)


def test_a_wall_clock_that_leaps_ends_no_transaction() -> None:
    server = make_impatient_server()
    server.ask(pend({0: 5}))
    server.advance(INTERVAL_MS)
    server.scheduler.wall_offset_ms += 10 * TIMEOUT_MS
    server.advance(TIMEOUT_MS - INTERVAL_MS)
    assert error_name(server.ask(end())) == "NONE"
    assert fetch_stable(server, 0) == (5, ErrorCode.NONE)


def test_what_an_import_brought_open_waits_from_the_import_on() -> None:
    """Its own timestamp may be old; if the import keeps the log's clock it has only the grace."""
    for imported_at_ms, waits_ms in ((None, GRACE_MS), (0, TIMEOUT_MS)):
        server = make_impatient_server()
        server.ask(pend({0: 5}))
        server.store = server.store.crash(0)
        server.scheduler.drop_all()
        server.scheduler.wall_offset_ms += 10 * TIMEOUT_MS
        if imported_at_ms is not None:
            grace = SideRecord(ImportGraceKey(), ImportGraceValue(server.scheduler.wall_ms()))
            server.store.write([], [encode_side(grace)])
            server.store.sync()
        server.start()
        server.advance(waits_ms - 1_000)
        assert fetch_stable(server, 0)[1] is ErrorCode.UNSTABLE_OFFSET_COMMIT
        server.advance(1_000 + INTERVAL_MS)
        assert fetch_stable(server, 0)[1] is ErrorCode.NONE


def test_since_when_a_transaction_is_open_is_the_same_after_a_restart() -> None:
    """Bug: for an imported one whose first offset was deleted since, it was computed anew."""
    server = make_impatient_server()
    for number in range(3):
        server.ask(pend({number: 5}))
        server.advance(1_000)
    for prefix in encode_producer_prefixes(P0):
        server.store.write([], [(key, None) for key, _ in server.store.side(prefix)])
    server.store.sync()
    server.restart()
    for number in range(2):
        server.ask(DeleteTopicOffsets(INTERNAL, G, TopicName("foo"), (number,)))
        live = server.runtime.shards[0].open_transactions
        assert live
        server.restart()
        assert server.runtime.shards[0].open_transactions == live
        if number == 0:
            # Said here, it is known from a record: what is deleted changes nothing.
            server.ask(pend({2: 6}))


def test_many_transactions_time_out_in_slices() -> None:
    server = make_impatient_server()
    count = 2 * transaction_timeouts.SLICE + 1
    for number in range(count):
        topics = (TopicOffsets(TopicName("foo"), None, make_offset_columns([(0, 1, -1, "")])),)
        server.submit(TxnOffsetCommit(CALLER, G, ProducerId(number), 0, topics))
    server.advance(TIMEOUT_MS + 2 * INTERVAL_MS)
    assert server.runtime.stats.transactions_timed_out == count
    assert not server.runtime.shards[0].open_transactions


def test_of_large_transactions_few_time_out_in_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_timeouts, "OFFSETS_OF_ONE", 1)
    server = make_impatient_server()
    at_ms: list[int] = []
    abort = transaction_timeouts.TransactionTimeouts._abort

    def note(self: transaction_timeouts.TransactionTimeouts, *found: Any) -> None:
        at_ms.append(server.runtime._clock.monotonic_ms())
        abort(self, *found)

    monkeypatch.setattr(transaction_timeouts.TransactionTimeouts, "_abort", note)
    for number in range(6):
        groups = [GroupId(f"{number}-{each}") for each in range(transaction_timeouts.SLICE // 2)]
        for group in groups:
            server.submit(replace(pend({0: 1}, group=group), producer_id=ProducerId(number)))
    server.advance(TIMEOUT_MS + 2 * INTERVAL_MS)
    assert server.runtime.stats.transactions_timed_out == 6
    assert [at_ms.count(moment) for moment in sorted(set(at_ms))] == [2, 2, 2]


def test_more_offsets_than_one_turn_makes_visible_do_not_wait_in_one_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "TRANSACTION_OFFSETS_MAX", 3)
    server = make_server(5)
    assert_committed(server.ask(pend({0: 1, 1: 1})), 2)
    refused = server.ask(pend({2: 1, 3: 1}))
    assert isinstance(refused, UnknownServerError)
    assert "exceeds the maximum of 3" in refused.message
    assert_committed(server.ask(pend({0: 2, 1: 2})), 2)
    assert_committed(server.ask(pend({2: 1, 0: 3})), 2)
    assert isinstance(server.ask(pend({4: 1})), UnknownServerError)
    server.ask(end())
    assert_committed(server.ask(pend({3: 1, 4: 1})), 2)
    assert fetch_stable(server, 0)[0] == 3


def assert_committed(answer: Any, count: int) -> None:
    assert [row.error for topic in answer.topics for row in topic.partitions] == (
        [ErrorCode.NONE] * count
    )


def test_nothing_times_out_while_there_is_no_space() -> None:
    server = make_impatient_server(log_min_free_bytes=100)
    server.ask(pend({0: 5}))
    free = 10
    set_free_space(server.runtime, lambda: free, 100)
    server.advance(2 * TIMEOUT_MS)
    assert server.runtime.shards[0].open_transactions
    free = 1_000
    server.advance(2 * INTERVAL_MS)
    assert not server.runtime.shards[0].open_transactions


def test_the_last_epoch_of_a_producer_cannot_be_raised() -> None:
    server = make_impatient_server()
    server.ask(pend({0: 5}, epoch=LAST_EPOCH))
    server.advance(TIMEOUT_MS + 2 * INTERVAL_MS)
    assert batches(server)[-1].producer_epoch == LAST_EPOCH
    assert fetch_stable(server, 0) == (-1, ErrorCode.NONE)


@pytest.mark.parametrize("restarts", [False, True], ids=["live", "restarted"])
@pytest.mark.parametrize(
    ("epoch", "marker_epoch", "version"),
    [(0, 0, 0), (0, 1, 0), (0, 1, 2), (LAST_EPOCH, LAST_EPOCH, 0), (LAST_EPOCH - 1, LAST_EPOCH, 2)],
)
def test_a_commit_that_comes_after_the_timeout_is_refused(
    epoch: int, marker_epoch: int, version: int, restarts: bool
) -> None:
    """Bug: with a marker of the next epoch (KIP-890) it succeeded, and the offsets were lost."""
    server = make_impatient_server()
    server.ask(pend({0: 5}, epoch=epoch))
    server.advance(TIMEOUT_MS + 2 * INTERVAL_MS)
    commit = end(epoch=marker_epoch, version=version)
    for _ in range(2):
        if restarts:
            server.restart()
        assert error_name(server.ask(pend({0: 6}, epoch=epoch))) == "INVALID_PRODUCER_EPOCH"
        assert error_name(server.ask(commit)) == "INVALID_PRODUCER_EPOCH"
    assert fetch_stable(server, 0) == (-1, ErrorCode.NONE)


@pytest.mark.parametrize("marker_epoch", [0, 1])
def test_an_abort_that_comes_after_the_timeout_is_done(marker_epoch: int) -> None:
    """Bug: at the producer's epoch it was refused, and its coordinator retried it for ever."""
    server = make_impatient_server()
    server.ask(pend({0: 5}))
    server.advance(TIMEOUT_MS + 2 * INTERVAL_MS)
    for _ in range(2):
        assert error_name(server.ask(end(committed=False, epoch=marker_epoch))) == "NONE"
    server.restart()
    assert error_name(server.ask(end(epoch=marker_epoch))) == "NONE"
    assert error_name(server.ask(pend({0: 6}, epoch=marker_epoch))) == "NONE"
    assert error_name(server.ask(end(epoch=marker_epoch))) == "NONE"
    assert fetch_stable(server, 0) == (6, ErrorCode.NONE)


def test_a_commit_of_what_came_after_the_timeout_is_done() -> None:
    server = make_impatient_server()
    server.ask(pend({0: 5}))
    server.advance(TIMEOUT_MS + 2 * INTERVAL_MS)
    assert error_name(server.ask(pend({0: 6}, epoch=1))) == "NONE"
    for _ in range(2):
        assert error_name(server.ask(end(epoch=1))) == "NONE"
    assert fetch_stable(server, 0) == (6, ErrorCode.NONE)


def test_what_timed_out_is_remembered_while_the_log_is_compacted_and_for_a_day() -> None:
    server = make_impatient_server()
    server.ask(pend({0: 5}))
    server.advance(TIMEOUT_MS + 2 * INTERVAL_MS)
    for _ in range(20):
        server.advance(3_600_000)
        assert error_name(server.ask(end(epoch=1))) == "INVALID_PRODUCER_EPOCH"
    server.advance(6 * 3_600_000)
    assert not server.runtime.shards[0].producers
    assert not server.runtime.shards[0].producer_groups
    server.restart()
    assert not server.runtime.shards[0].producer_groups


H = GroupId("h")


def test_a_stranger_fences_nobody_elses_producer() -> None:
    """Bug: a commit in a group of its own raised the producer's epoch for all groups."""
    server = make_server()
    assert error_name(server.ask(pend({0: 5}))) == "NONE"
    assert error_name(server.ask(pend({0: 1}, epoch=900, group=H))) == "NONE"
    for _ in range(2):
        assert error_name(server.ask(pend({1: 6}))) == "NONE"
        server.restart()
    assert error_name(server.ask(pend({0: 1}, epoch=899, group=H))) == "INVALID_PRODUCER_EPOCH"
    for _ in range(2):
        assert error_name(server.ask(end())) == "NONE"
    assert fetch_stable(server, 0) == (5, ErrorCode.NONE)
    assert fetch_stable(server, 1) == (6, ErrorCode.NONE)


def test_what_a_stranger_leaves_open_fences_nobody_elses_producer_when_it_times_out() -> None:
    server = make_impatient_server()
    server.ask(pend({0: 1}, epoch=900, group=H))
    server.advance(TIMEOUT_MS + 2 * INTERVAL_MS)
    assert error_name(server.ask(pend({0: 5}))) == "NONE"
    for _ in range(2):
        assert error_name(server.ask(end())) == "NONE"
    assert fetch_stable(server, 0) == (5, ErrorCode.NONE)


def test_a_producer_is_fenced_by_its_own_epoch_in_a_group_and_by_markers_in_all() -> None:
    server = make_server()
    server.ask(pend({0: 5}, epoch=4))
    assert error_name(server.ask(pend({0: 6}, epoch=3))) == "INVALID_PRODUCER_EPOCH"
    assert error_name(server.ask(end(epoch=3))) == "INVALID_PRODUCER_EPOCH"
    server.restart()
    assert error_name(server.ask(pend({0: 6}, epoch=3))) == "INVALID_PRODUCER_EPOCH"
    server.ask(end(committed=False, epoch=5))
    for _ in range(2):
        for group in (G, H):
            refused = server.ask(pend({0: 6}, epoch=4, group=group))
            assert error_name(refused) == "INVALID_PRODUCER_EPOCH"
        server.restart()
