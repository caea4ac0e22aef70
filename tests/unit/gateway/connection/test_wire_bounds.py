"""Limits on what one request may make the server allocate: array elements and strings."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.codec.decoding import STRING_BYTES_MAX, DecodeError, decode
from gateway.codec.encoding import encode, encode_unsigned_varint
from gateway.codec.kio_schema import request_schema, request_type
from gateway.commits import offset_commit_wire
from gateway.commits.offset_commit_wire import encode_commit_response, make_commit_decoder
from gateway.heartbeats.heartbeat_wire import make_heartbeat_decoder
from model.errors import ErrorCode
from model.ids import GroupId, TopicName, compute_log_partition
from model.responses.offsets import PartitionResult, TopicResult
from storage.codec import hot

HEARTBEAT, COMMIT, FETCH = 68, 8, 9
ELEMENTS = 100


def make_fetch(group_id: str, topic: str, partitions: int) -> bytes:
    wire = request_schema(FETCH, 8)
    rows = wire.OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(range(partitions)))
    group = wire.OffsetFetchRequestGroup(group_id=group_id, topics=(rows,))
    request = wire.OffsetFetchRequest(groups=(group,), require_stable=False)
    return encode(type(request), request)


def make_heartbeat(member_id: str, owned: int) -> bytes:
    wire = request_schema(HEARTBEAT, 1)
    rows = wire.TopicPartitions(topic_id=b"t" * 16, partitions=tuple(range(owned)))
    request = wire.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=1,
        instance_id=None,
        rack_id=None,
        rebalance_timeout=-1,
        subscribed_topic_names=None,
        subscribed_topic_regex=None,
        server_assignor=None,
        topic_partitions=(rows,),
    )
    return encode(type(request), request)


def read_fetch(data: bytes) -> Any:
    return decode(request_type(FETCH, 8), data, 0, len(data), ELEMENTS)


def read_heartbeat(data: bytes) -> Any:
    return make_heartbeat_decoder(1, ELEMENTS)(data, 0, len(data))


def test_partition_indexes_are_elements_as_any_others() -> None:
    read_fetch(make_fetch("g", "t", ELEMENTS - 2))
    with pytest.raises(DecodeError, match="more array elements"):
        read_fetch(make_fetch("g", "t", ELEMENTS))
    read_heartbeat(make_heartbeat("m", ELEMENTS - 1))
    with pytest.raises(DecodeError, match="more array elements"):
        read_heartbeat(make_heartbeat("m", ELEMENTS))


def test_a_string_has_no_more_bytes_than_kafka_reads() -> None:
    longest = "x" * STRING_BYTES_MAX
    read_fetch(make_fetch(longest, longest, 1))
    read_heartbeat(make_heartbeat(longest, 1))
    for data, read in (
        (make_fetch(longest + "x", "t", 1), read_fetch),
        (make_fetch("g", longest + "x", 1), read_fetch),
        (make_heartbeat(longest + "x", 1), read_heartbeat),
    ):
        with pytest.raises(DecodeError, match="more than 32767"):
            read(data)


def make_commit(topic: str) -> bytes:
    wire = request_schema(COMMIT, 9)
    row = wire.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
    )
    rows = wire.OffsetCommitRequestTopic(name=topic, partitions=(row,))
    request = wire.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=(rows,),
    )
    return encode(type(request), request)


def test_a_commit_is_read_within_the_same_bounds() -> None:
    read = make_commit_decoder(9, ELEMENTS)
    longest = make_commit("x" * STRING_BYTES_MAX)
    assert read(longest, 0, len(longest)).topics[0].name == "x" * STRING_BYTES_MAX
    longer = make_commit("x" * (STRING_BYTES_MAX + 1))
    with pytest.raises(DecodeError, match="more than 32767"):
        read(longer, 0, len(longer))


def test_what_strangers_call_topics_and_groups_is_not_kept() -> None:
    caches = (
        offset_commit_wire._encode_short_name,
        hot._find_offset_key_prefix,
    )
    before = [cache.cache_info().currsize for cache in caches]
    for number in range(20):
        long = f"{number}" + "x" * 1_000
        result = PartitionResult(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        encode_commit_response((TopicResult(TopicName(long), None, (result,)),), 9)
        hot.encode_offset_key_prefix(long, "t")
        partition = compute_log_partition(GroupId(long), 50)
        assert partition == compute_log_partition(GroupId(long), 50)
    assert [cache.cache_info().currsize for cache in caches] == before


def test_tagged_fields_are_elements_too() -> None:
    body = make_heartbeat("m", 1)
    assert body.endswith(b"\x00"), "no tagged fields at its end"

    def with_tags(count: int) -> bytes:
        tags = b"".join(encode_unsigned_varint(tag) + b"\x00" for tag in range(count))
        return body[:-1] + encode_unsigned_varint(count) + tags

    read_heartbeat(with_tags(ELEMENTS - 2))
    with pytest.raises(DecodeError, match="more array elements"):
        read_heartbeat(with_tags(ELEMENTS))
    fetch = make_fetch("g", "t", 1)[:-1]
    tags = b"".join(encode_unsigned_varint(tag) + b"\x00" for tag in range(ELEMENTS))
    with pytest.raises(DecodeError, match="more array elements"):
        read_fetch(fetch + encode_unsigned_varint(ELEMENTS) + tags)
