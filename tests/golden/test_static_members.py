"""Static members as Kafka 4.3.0 has them: the recorded requests come to the records that it wrote.

The log is replayed up to a batch; then the request that brought that batch about, as it was sent,
is handled, and must come to the same bytes. Only the order within a record is left out, which is
that of Kafka's hash maps, and targets of the uniform assignor, which follow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coordinator.core.replay.group_records import replay
from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import handle
from gateway.apis.api_registry import APIS
from gateway.apis.groups.k68_consumer_group_heartbeat import make_command
from gateway.headers import Routes, skip_header
from model.caller import INTERNAL, Caller
from model.commands.consumer import (
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    Deadline,
    ExpireMember,
)
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, InstanceId, LogPartition, MemberId, compute_log_partition
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    Record,
    TopicPartitions,
)
from model.now import Now
from model.topics import TopicImage, compute_image_with
from storage.codec.batches import Batch
from storage.codec.record_codec import encode_key, encode_value
from tests.golden.kafka_log import PARTITIONS, decode_record, final_topics
from tests.support.batches import decode_batches
from tests.support.gateway.exchanges import load_exchanges
from tests.support.storage.golden import segments

GROUPS = ("o12-consumer-static", "o13-consumer-static4", "o43-py-rdkafka-consumer-static")
HEARTBEAT = 68
TARGET_METADATA = ConsumerGroupTargetAssignmentMetadataKey


@cache
def topics() -> TopicImage:
    image = TopicImage()
    for topic in final_topics():
        image = compute_image_with(image, topic)
    return image


@cache
def requests_of(group: str) -> list[tuple[dict[str, Any], Any]]:
    """Recorded heartbeats that join or leave, each with its command."""
    routes = Routes(APIS, 10_000)
    found = []
    for row in load_exchanges():
        if row["apiKey"] != HEARTBEAT or row["requestJson"]["groupId"] != group:
            continue
        data = bytes.fromhex(row["request"])
        route = routes.find(data[:4])
        assert route is not None
        _, position = skip_header(data, 8, len(data), route.header_tags)
        request = cast(Any, route.decode(data, position, len(data)))
        caller = Caller("User:ANONYMOUS", row["clientId"], "/127.0.0.1")
        if request.member_epoch == 0:
            command = make_command(cast(Any, SimpleNamespace(caller=caller)), request)
            found.append((row, command))
        elif request.member_epoch < 0:
            leave = ConsumerGroupLeave(
                caller,
                GroupId(request.group_id),
                MemberId(request.member_id),
                request.member_epoch,
                InstanceId(request.instance_id),
            )
            found.append((row, leave))
    return found


def batches_of(group: str) -> Iterator[tuple[Batch, list[Record]]]:
    data = segments()[compute_log_partition(GroupId(group), PARTITIONS)]
    for batch in decode_batches(data):
        if not batch.is_control:
            yield batch, [decode_record(record) for record in batch.records]


def find_command(group: str, batch: Batch, records: list[Record]) -> Any:
    """The request, or the deadline, that brought the batch about; ``None`` for another request."""
    first = records[0].key
    if getattr(first, "group_id", None) != group:
        return None
    members = {getattr(record.key, "member_id", None) for record in records if record.value}
    members |= {getattr(first, "member_id", None)}
    for row, command in requests_of(group):
        is_then = row["requestTs"] <= batch.max_timestamp <= row["responseTs"] + 1
        if is_then and command.member_id in members and not row["responseJson"]["errorCode"]:
            return command
    is_expiry = (
        isinstance(first, ConsumerGroupCurrentMemberAssignmentKey)
        and records[0].value is None
        and isinstance(records[-1].key, ConsumerGroupMetadataKey)
    )
    if not is_expiry:
        return None
    return ExpireMember(INTERNAL, GroupId(group), first.member_id, Deadline.SESSION)


def compute_records(shard: Shard, command: Any, now: Now, written: list[Record]) -> list[Record]:
    """What the command comes to, with its second half; a target in between is Kafka's."""
    outcome = handle(shard, command, now)
    records = list(outcome.records)
    if outcome.then is not None:
        is_new_target = any(isinstance(r.key, TARGET_METADATA) for r in written)
        targets = written[len(records) : -1] if is_new_target else []
        for record in (*records, *targets):
            replay(shard, record)
        records += [*targets, *handle(shard, outcome.then, now).records]
    return records


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """The bytes of a record, topics and partitions in ascending order."""
    key, value = record
    match value:
        case ConsumerGroupCurrentMemberAssignmentValue():
            value = ConsumerGroupCurrentMemberAssignmentValue(
                value.member_epoch,
                value.previous_member_epoch,
                value.state,
                sort_assigned(value.assigned_partitions),
                sort_assigned(value.partitions_pending_revocation),
            )
        case ConsumerGroupTargetAssignmentMemberValue(given):
            ordered = sorted(given, key=lambda topic: topic.topic_id)
            value = ConsumerGroupTargetAssignmentMemberValue(
                tuple(TopicPartitions(t.topic_id, tuple(sorted(t.partitions))) for t in ordered)
            )
        case _:
            pass
    return encode_key(key), None if value is None else encode_value(value)


def sort_assigned(
    assigned: tuple[AssignedTopicPartitions, ...],
) -> tuple[AssignedTopicPartitions, ...]:
    found = []
    for topic in sorted(assigned, key=lambda topic: topic.topic_id):
        assert topic.assignment_epochs is not None
        pairs = sorted(zip(topic.partitions, topic.assignment_epochs, strict=True))
        partitions, epochs = zip(*pairs, strict=True)
        found.append(AssignedTopicPartitions(topic.topic_id, partitions, epochs))
    return tuple(found)


def make_shard(group: str) -> Shard:
    number = LogPartition(compute_log_partition(GroupId(group), PARTITIONS))
    return Shard(number, CoordinatorSettings(), topics())


def kind_of(command: Any, records: list[Record]) -> str:
    match command:
        case ConsumerGroupLeave(member_epoch=-2):
            return "leaves for a while"
        case ConsumerGroupLeave():
            return "leaves"
        case ExpireMember():
            return "expires"
        case _:
            return "returns" if records[0].value is None else "joins"


@pytest.mark.parametrize("group", GROUPS)
def test_a_recorded_request_comes_to_the_records_that_kafka_wrote(group: str) -> None:
    seen: Counter[str] = Counter()
    before: list[Record] = []
    for batch, written in batches_of(group):
        command = find_command(group, batch, written)
        if command is not None:
            shard = make_shard(group)
            for record in before:
                replay(shard, record)
            now = Now(batch.max_timestamp, batch.max_timestamp)
            kind = kind_of(command, written)
            seen[kind] += 1
            if kind == "joins":
                # The target is the assignor's, and what the member gets follows from it.
                ours = list(handle(shard, command, now).records)
                starts = [
                    place
                    for place, record in enumerate(written)
                    if isinstance(record.key, ConsumerGroupMemberMetadataKey)
                    and record.key.member_id == command.member_id
                ]
                written_then = written[starts[0] : starts[0] + len(ours)]
                if starts[0] > 0:
                    continue  # Another join went into the same batch before it.
                assert [encode(r) for r in ours] == [encode(r) for r in written_then]
            else:
                ours = compute_records(shard, command, now, written)
                assert [encode(r) for r in ours] == [encode(r) for r in written], kind
        before += written
    assert seen["leaves for a while"] >= 2
    assert seen["returns"] >= 1
    assert seen["expires"] >= 1
    assert seen["joins"] >= 2


@pytest.mark.parametrize("group", GROUPS[:2])
def test_a_recorded_join_that_kafka_refused_is_refused(group: str) -> None:
    refused = [
        (row, command)
        for row, command in requests_of(group)
        if row["responseJson"]["errorCode"] == ErrorCode.UNRELEASED_INSTANCE_ID
    ]
    assert len(refused) == 1
    for row, command in refused:
        assert isinstance(command, ConsumerGroupHeartbeat)
        shard = make_shard(group)
        for batch, records in batches_of(group):
            if batch.max_timestamp < row["requestTs"]:
                for record in records:
                    replay(shard, record)
        with pytest.raises(GroupError) as failure:
            handle(shard, command, Now(row["requestTs"], row["requestTs"]))
        assert failure.value.code is ErrorCode.UNRELEASED_INSTANCE_ID
