"""Groups and offsets deleted at the times at which a real Kafka 4.3.0 deleted them, and the offsets
of its transactions: the same codes, and the same records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from coordinator.core.groups.group_deletion import handle_delete_group, handle_delete_offsets
from coordinator.core.offsets.transactions import handle_txn_offset_commit
from coordinator.core.state.open_transactions import OffsetPlace
from coordinator.core.state.outcome import Outcome
from model.commands.groups import DeleteGroup
from model.commands.offsets import DeleteOffsets, TopicOffsets
from model.commands.transactions import TxnOffsetCommit
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import OffsetCommitKey, Record
from model.now import Now
from model.responses.offsets import OffsetCommitResponse, OffsetDeleteResponse
from model.topics import compute_image_of
from storage.codec.record_codec import decode_key
from tests.golden.kafka_log import LogInTime, decode_record, final_topics
from tests.golden.test_describe import Exchange, load_exchanges
from tests.support.virtual.server import CALLER

TXN_OFFSET_COMMIT, DELETE_GROUPS, OFFSET_DELETE = 28, 42, 47
CONCURRENT_TRANSACTIONS = 51


def load_log() -> LogInTime:
    return LogInTime(compute_image_of(tuple(final_topics())))


def advance_before(log: LogInTime, group_id: GroupId, exchange: Exchange) -> None:
    """What was written before the request came; its own records have its time at the earliest."""
    partition = log.shard_of(group_id).partition
    while log.advance(partition, exchange["requestTs"] - 1):
        pass


def list_next_records(log: LogInTime, group_id: GroupId) -> list[Record]:
    """The group's records in the batch that Kafka wrote next to the group's partition."""
    partition = log.shard_of(group_id).partition
    return [
        record
        for record in map(decode_record, log.next_batch(partition).records)
        if group_id in (getattr(record.key, "group", None), getattr(record.key, "group_id", None))
    ]


def list_offsets(log: LogInTime, group_id: GroupId) -> list[OffsetPlace]:
    """What the store would show."""
    keys = map(decode_key, log.latest_keys(log.shard_of(group_id).partition))
    return [
        (key.topic, key.partition)
        for key in keys
        if isinstance(key, OffsetCommitKey) and key.group == group_id
    ]


def split(records: Iterable[Record]) -> tuple[set[Record], list[Record]]:
    """Offsets, which Kafka writes in the order of a hash map, and what comes after them."""
    records = list(records)
    offsets = [record for record in records if isinstance(record.key, OffsetCommitKey)]
    return set(offsets), records[len(offsets) :]


def test_groups_are_deleted_as_kafka_deleted_them() -> None:
    log, codes = load_log(), []
    for exchange in load_exchanges(DELETE_GROUPS):
        kafkas = {row["groupId"]: row["errorCode"] for row in exchange["responseJson"]["results"]}
        for name, code in kafkas.items():
            group_id = GroupId(name)
            advance_before(log, group_id, exchange)
            shard = log.shard_of(group_id)
            command, places = DeleteGroup(CALLER, group_id), list_offsets(log, group_id)
            if code != ErrorCode.NONE:
                with pytest.raises(GroupError) as refused:
                    handle_delete_group(shard, command, places)
                assert refused.value.code == code, name
            else:
                outcome = handle_delete_group(shard, command, places)
                if group_id in shard.foreign_groups:
                    # What of a share group's state is being deleted, by those who have it.
                    assert log.advance(shard.partition, exchange["responseTs"])
                assert split(outcome.records) == split(list_next_records(log, group_id)), name
            codes.append(code)
    assert sorted(codes) == [0, 0, 0, 0, 68, 69]


def test_offsets_are_deleted_as_kafka_deleted_them() -> None:
    log, written = load_log(), 0
    exchanges = load_exchanges(OFFSET_DELETE)
    for exchange in exchanges:
        request = exchange["requestJson"]
        group_id = GroupId(request["groupId"])
        advance_before(log, group_id, exchange)
        topics = tuple(
            (
                TopicName(topic["name"]),
                tuple(row["partitionIndex"] for row in topic["partitions"]),
            )
            for topic in request["topics"]
        )
        command = DeleteOffsets(CALLER, group_id, topics)
        places = list_offsets(log, group_id)
        outcome = handle_delete_offsets(log.shard_of(group_id), command, places)
        assert compute_codes(outcome) == list_kafkas_codes(exchange)
        if outcome.records:
            assert set(outcome.records) == set(list_next_records(log, group_id))
            written += len(outcome.records)
    assert (len(exchanges), written) == (3, 3)


def compute_codes(outcome: Outcome) -> dict[tuple[str | None, int], int]:
    assert isinstance(outcome.response, OffsetDeleteResponse | OffsetCommitResponse)
    return {
        (topic.name, row.partition): int(row.error)
        for topic in outcome.response.topics
        for row in topic.partitions
    }


def list_kafkas_codes(exchange: Exchange) -> dict[tuple[str | None, int], int]:
    return {
        (topic["name"], row["partitionIndex"]): row["errorCode"]
        for topic in exchange["responseJson"]["topics"]
        for row in topic["partitions"]
    }


def make_commit(request: dict[str, Any]) -> TxnOffsetCommit:
    return TxnOffsetCommit(
        CALLER,
        GroupId(request["groupId"]),
        ProducerId(request["producerId"]),
        request["producerEpoch"],
        tuple(
            TopicOffsets(
                TopicName(topic["name"]),
                None,
                make_offset_columns(
                    (
                        row["partitionIndex"],
                        row["committedOffset"],
                        row["committedLeaderEpoch"],
                        row["committedMetadata"],
                    )
                    for row in topic["partitions"]
                ),
            )
            for topic in request["topics"]
        ),
        MemberId(request["memberId"]),
        None if request["generationId"] < 0 else request["generationId"],
    )


def test_offsets_of_transactions_are_written_as_kafka_wrote_them() -> None:
    """But where its transaction coordinator was asked first and said no, or the member is a classic
    one.
    """
    log, done, refused, classic_members, concurrent = load_log(), 0, 0, 0, 0
    for exchange in load_exchanges(TXN_OFFSET_COMMIT):
        command = make_commit(exchange["requestJson"])
        advance_before(log, command.group_id, exchange)
        shard = log.shard_of(command.group_id)
        classic = shard.classic_groups.get(command.group_id)
        if classic is not None and classic.members and command.member_epoch is not None:
            classic_members += 1
            continue
        if CONCURRENT_TRANSACTIONS in list_kafkas_codes(exchange).values():
            concurrent += 1
            continue
        kafkas = set(list_kafkas_codes(exchange).values())
        if kafkas != {ErrorCode.NONE}:
            with pytest.raises(GroupError) as error:
                handle_txn_offset_commit(shard, command, Now(0, 0))
            assert kafkas == {error.value.code}
            refused += 1
            continue
        outcome = handle_txn_offset_commit(shard, command, Now(0, 0))
        assert compute_codes(outcome) == list_kafkas_codes(exchange)
        assert outcome.transaction is not None
        ours = {strip_time(record) for record in outcome.transaction.records}  # type: ignore[union-attr]
        assert ours == {strip_time(r) for r in list_next_records(log, command.group_id)}
        done += 1
    assert (done, refused, classic_members, concurrent) == (15, 1, 8, 2)


def strip_time(record: Record) -> tuple[Any, ...]:
    value: Any = record.value
    return record.key, value.offset, value.leader_epoch, value.metadata, value.topic_id
