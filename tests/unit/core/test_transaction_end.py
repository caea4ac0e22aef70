"""An operator ends a transaction: the one that is open, at the epoch that it saw."""

from __future__ import annotations

from model.commands.offsets import TopicOffsets
from model.commands.transactions import EndTransaction, TxnOffsetCommit, WriteTxnMarkers
from model.ids import GroupId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.responses.offsets import OffsetCommitResponse
from model.responses.response import Done
from tests.support.virtual.server import CALLER, VirtualServer, error_name

G = GroupId("g")
PRODUCER = ProducerId(7)


def begin(server: VirtualServer, producer_epoch: int) -> None:
    topics = (TopicOffsets(TopicName("foo"), None, make_offset_columns([(0, 5, -1, "")])),)
    answer = server.ask(TxnOffsetCommit(CALLER, G, PRODUCER, producer_epoch, topics))
    assert isinstance(answer, OffsetCommitResponse)


def end(server: VirtualServer, producer_epoch: int) -> str:
    place = server.runtime.partition_of(G)
    answer = server.ask(EndTransaction(CALLER, place, PRODUCER, producer_epoch, committed=True))
    return "NONE" if isinstance(answer, Done) else error_name(answer)


def test_nothing_is_ended_where_nothing_is_open() -> None:
    server = VirtualServer({"foo": 1})
    assert end(server, 3) == "UNKNOWN_PRODUCER_ID"
    begin(server, 3)
    assert end(server, 3) == "NONE"
    assert end(server, 3) == "UNKNOWN_PRODUCER_ID"


def test_the_epoch_is_the_one_that_the_operator_saw() -> None:
    """Trigger: the producer began another transaction after the list was shown."""
    server = VirtualServer({"foo": 1})
    begin(server, 3)
    assert end(server, 2) == "INVALID_PRODUCER_EPOCH"
    assert end(server, 4) == "INVALID_PRODUCER_EPOCH"
    assert end(server, 3) == "NONE"


def test_it_ends_with_the_coordinator_epoch_of_the_last_marker() -> None:
    """A marker of an older transaction coordinator would be refused."""
    server = VirtualServer({"foo": 1})
    begin(server, 3)
    place = server.runtime.partition_of(G)
    server.ask(WriteTxnMarkers(CALLER, place, PRODUCER, 3, coordinator_epoch=9, committed=True))
    begin(server, 4)
    assert end(server, 4) == "NONE"
