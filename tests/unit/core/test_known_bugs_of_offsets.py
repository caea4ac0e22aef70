"""Known bugs of other coordinators in offsets and transactions, each by its trigger."""

from __future__ import annotations

import pytest

from model.commands.groups import ListGroups
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets, TopicToFetch
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.errors import ErrorCode
from model.ids import GroupId, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.responses.groups import ListGroupsResponse
from model.responses.offsets import OffsetCommitResponse, OffsetFetchResponse
from model.responses.response import Done
from tests.support.virtual.server import CALLER, VirtualServer, error_name

G = GroupId("g")
PRODUCER = ProducerId(7)
HIGHEST_PRODUCER_EPOCH = 32_767


def commit_in_transaction(
    server: VirtualServer, offsets: dict[int, tuple[int, str]], producer_epoch: int = 0
) -> list[ErrorCode]:
    """Commit partitions of foo, {partition: (offset, metadata)}; the error of each."""
    partitions = make_offset_columns(
        (partition, offset, -1, metadata) for partition, (offset, metadata) in offsets.items()
    )
    topics = (TopicOffsets(TopicName("foo"), None, partitions),)
    answer = server.ask(TxnOffsetCommit(CALLER, G, PRODUCER, producer_epoch, topics))
    assert isinstance(answer, OffsetCommitResponse), repr(answer)
    return [row.error for topic in answer.topics for row in topic.partitions]


def marker(server: VirtualServer, producer_epoch: int = 0, committed: bool = True) -> str:
    command = WriteTxnMarkers(
        CALLER, server.runtime.partition_of(G), PRODUCER, producer_epoch, 0, committed
    )
    answer = server.ask(command)
    return "NONE" if isinstance(answer, Done) else error_name(answer)


def fetch_stable(server: VirtualServer, *partitions: int) -> list[tuple[int, ErrorCode]]:
    wanted = TopicToFetch(TopicName("foo"), None, partitions)
    answer = server.ask(OffsetFetch(CALLER, G, (wanted,), require_stable=True))
    assert isinstance(answer, OffsetFetchResponse), repr(answer)
    return [(row.offset, row.error) for row in answer.topics[0].partitions]


def test_what_is_refused_in_a_transaction_does_not_wait_for_its_marker() -> None:
    """KAFKA-16371: the metadata of one partition was too large, and it stayed unstable for ever."""
    server = VirtualServer({"foo": 2})
    errors = commit_in_transaction(server, {0: (5, ""), 1: (6, "m" * 4_097)})
    assert errors == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert fetch_stable(server, 0, 1) == [
        (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT),
        (-1, ErrorCode.NONE),
    ]
    assert marker(server) == "NONE"
    assert fetch_stable(server, 0, 1) == [(5, ErrorCode.NONE), (-1, ErrorCode.NONE)]


def test_what_a_commit_was_checked_against_is_what_it_is_written_against() -> None:
    """KAFKA-15784: the member left between check and write."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    offsets = make_offset_columns([(0, 5, -1, "")])
    command = TxnOffsetCommit(
        CALLER,
        G,
        PRODUCER,
        0,
        (TopicOffsets(TopicName("foo"), None, offsets),),
        MemberId("a"),
        2,
    )
    before, _, after = server.submit(command), server.leave("g", "a"), server.submit(command)
    server.settle()
    assert isinstance(before.answer, OffsetCommitResponse)
    assert error_name(after.answer) == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_that_comes_again_is_answered_as_before(committed: bool) -> None:
    """KAFKA-19999 and others: its epoch was not above the last, or no transaction was open."""
    server = VirtualServer({"foo": 2})
    commit_in_transaction(server, {0: (5, "")})
    for _ in range(3):
        assert marker(server, committed=committed) == "NONE"
    server.restart()
    assert marker(server, committed=committed) == "NONE"
    assert fetch_stable(server, 0) == [(5 if committed else -1, ErrorCode.NONE)]


def test_the_highest_producer_epoch_is_one_as_any() -> None:
    """KAFKA-19367: the epoch overflowed and became negative."""
    server = VirtualServer({"foo": 2})
    highest = HIGHEST_PRODUCER_EPOCH
    assert commit_in_transaction(server, {0: (5, "")}, highest) == [ErrorCode.NONE]
    server.restart()
    assert marker(server, highest - 1) == "INVALID_PRODUCER_EPOCH"
    assert marker(server, highest) == "NONE"
    assert fetch_stable(server, 0) == [(5, ErrorCode.NONE)]


def test_nothing_times_out_while_the_disk_is_slow() -> None:
    """KAFKA-17267: a timeout was an error that is fatal to the client. Responses wait instead."""
    server = VirtualServer({"foo": 2})
    server.scheduler.blocking_ms = lambda: 60_000
    command = server.commit_command("g", "", None, "foo", {0: 5})
    committing = server.submit(command)
    fetching = server.submit(server.fetch_command("g", "foo", (0,)))
    server.advance(59_000)
    assert not committing.is_answered
    server.advance(120_000)
    assert isinstance(committing.answer, OffsetCommitResponse)
    assert isinstance(fetching.answer, OffsetFetchResponse)


def test_commits_take_effect_in_the_order_in_which_they_came() -> None:
    """Trigger: concurrent commits, some in one write and some in the next."""
    server = VirtualServer({"foo": 1})
    server.scheduler.blocking_ms = lambda: 3
    pending = []
    for offset in range(200):
        pending.append(server.submit(server.commit_command("g", "", None, "foo", {0: offset})))
        if offset % 7 == 0:
            server.advance(1)
    server.advance(1_000)
    assert all(isinstance(answer.answer, OffsetCommitResponse) for answer in pending)
    assert server.fetch("g", "foo", 0) == 199
    server.restart()
    assert server.fetch("g", "foo", 0) == 199


def test_lists_of_nothing_are_answered() -> None:
    """KAFKA-15849."""
    answer = VirtualServer().ask(ListGroups(CALLER))
    assert answer == ListGroupsResponse(())


def test_the_empty_group_id_keeps_offsets_and_can_be_seen() -> None:
    """KAFKA-6773: old clients commit without a group."""
    server = VirtualServer({"foo": 1})
    offsets = make_offset_columns([(0, 5, -1, "")])
    topics = (TopicOffsets(TopicName("foo"), None, offsets),)
    empty = GroupId("")
    answer = server.ask(OffsetCommit(CALLER, empty, MemberId(""), None, topics))
    assert isinstance(answer, OffsetCommitResponse)
    server.restart()
    assert server.fetch("", "foo", 0) == 5
    listed = server.ask(ListGroups(CALLER))
    assert isinstance(listed, ListGroupsResponse)
    assert [group.group_id for group in listed.groups] == [""]


def test_a_record_larger_than_a_batch_of_a_client_is_written() -> None:
    """KAFKA-16831: the limit of a batch was that of producers, 16 KiB."""
    server = VirtualServer({"foo": 30_000, "bar": 1})
    joined = server.join("g", "a", ["foo"])
    assert server.names(joined.assignment) == {"foo": tuple(range(30_000))}
    long_names = [f"{number:0>200}" for number in range(500)]
    assert server.join("h", "b", long_names).member_epoch == 2
    server.restart()
    assert server.beat(server.heartbeat("g", "a", 2)).member_epoch == 2
    assert server.beat(server.heartbeat("h", "b", 2)).member_epoch == 2
