"""The hand-written codecs read and write the same as the compiled codec."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.runtime.loop.slices import run_at_once
from gateway.codec.decoding import DecodeError, decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import request_schema, request_type, response_schema, response_type
from gateway.commits.offset_commit_wire import (
    encode_commit_response,
    make_commit_decoder,
    make_long_commit_decoder,
)
from gateway.heartbeats.heartbeat_wire import encode_heartbeat_response, make_heartbeat_decoder
from model.errors import ErrorCode
from model.ids import MemberId, TopicId, TopicName
from model.log.records import TopicPartitions
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.responses.offsets import PartitionResult, TopicResult
from tests.support.gateway.exchanges import load_exchanges
from tests.unit.gateway.codec.test_codec_golden import load_vectors

HEARTBEAT, COMMIT = 68, 8

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
long_texts = st.one_of(texts, st.integers(120, 300).map(lambda size: "x" * size))
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
uuids = st.binary(min_size=16, max_size=16)


@st.composite
def heartbeats(draw: Any, version: int) -> Any:
    wire = request_schema(HEARTBEAT, version)
    fields = {
        "group_id": draw(long_texts),
        "member_id": draw(long_texts),
        "member_epoch": draw(int32s),
        "instance_id": draw(st.none() | texts),
        "rack_id": draw(st.none() | texts),
        "rebalance_timeout": draw(int32s),
        "subscribed_topic_names": draw(st.none() | st.lists(texts, max_size=5).map(tuple)),
        "server_assignor": draw(st.none() | texts),
        "topic_partitions": draw(
            st.none()
            | st.lists(
                st.builds(
                    lambda topic, partitions: wire.TopicPartitions(
                        topic_id=topic, partitions=partitions
                    ),
                    uuids,
                    st.lists(int32s, max_size=200).map(tuple),
                ),
                max_size=4,
            ).map(tuple)
        ),
    }
    if version:
        fields["subscribed_topic_regex"] = draw(st.none() | texts)
    return wire.ConsumerGroupHeartbeatRequest(**fields)


def check_heartbeat_read(version: int, body: bytes) -> None:
    padded = b"zz" + body + b"zz"
    ours = make_heartbeat_decoder(version, 10_000)(padded, 2, 2 + len(body))
    common = decode(request_type(HEARTBEAT, version), body, 0, len(body), 10_000)
    for name in ours._fields:
        expected = getattr(common, name, None)
        if name == "topic_partitions" and expected is not None:
            merged: dict[TopicId, set[int]] = {}
            for row in expected:
                merged.setdefault(TopicId(row.topic_id or bytes(16)), set()).update(row.partitions)
            expected = tuple(
                TopicPartitions(topic_id, tuple(sorted(numbers)))
                for topic_id, numbers in merged.items()
            )
        assert getattr(ours, name) == expected


@pytest.mark.parametrize("version", [0, 1])
@given(data=st.data())
def test_heartbeat_is_read_alike(version: int, data: st.DataObject) -> None:
    request = data.draw(heartbeats(version))
    check_heartbeat_read(version, encode(type(request), request))


@given(
    member_id=long_texts,
    epoch=int32s,
    interval=st.integers(0, 2**31 - 1),
    assignment=st.none()
    | st.lists(
        st.builds(
            TopicPartitions,
            uuids.filter(any),
            st.lists(st.integers(0, 2**31 - 1), max_size=200).map(tuple),
        ),
        max_size=130,
    ).map(tuple),
)
def test_heartbeat_response_is_written_alike(
    member_id: str, epoch: int, interval: int, assignment: tuple[TopicPartitions, ...] | None
) -> None:
    response = ConsumerGroupHeartbeatResponse(
        MemberId(member_id), epoch, 5_000, assignment, True, True, True
    )
    wire = response_schema(HEARTBEAT)
    entity = wire.ConsumerGroupHeartbeatResponse(
        throttle_time=0,
        error_code=0,
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval=interval,
        assignment=None
        if assignment is None
        else wire.Assignment(
            topic_partitions=[
                wire.TopicPartitions(topic_id=row.topic_id, partitions=row.partitions)
                for row in assignment
            ]
        ),
    )
    body, interval_at = encode_heartbeat_response(response, interval)
    for version in (0, 1):
        assert body == encode(response_type(HEARTBEAT, version), entity)
    assert body[interval_at : interval_at + 4] == interval.to_bytes(4, "big")


@st.composite
def commits(draw: Any, version: int) -> Any:
    wire = request_schema(COMMIT, version)
    topics = []
    for _ in range(draw(st.integers(0, 4))):
        rows = [
            wire.OffsetCommitRequestPartition(
                partition_index=draw(int32s),
                committed_offset=draw(int64s),
                committed_leader_epoch=draw(int32s),
                committed_metadata=draw(st.none() | st.just("") | long_texts),
            )
            for _ in range(draw(st.integers(0, 5)))
        ] * draw(st.sampled_from([1, 1, 40]))
        which = {"topic_id": draw(uuids)} if version >= 10 else {"name": draw(long_texts)}
        topics.append(wire.OffsetCommitRequestTopic(partitions=tuple(rows), **which))
    return wire.OffsetCommitRequest(
        group_id=draw(long_texts),
        generation_id_or_member_epoch=draw(int32s),
        member_id=draw(long_texts),
        group_instance_id=draw(st.none() | texts),
        topics=tuple(topics),
    )


def check_commit_read(version: int, body: bytes) -> None:
    padded = b"zz" + body + b"zz"
    ours = make_commit_decoder(version, 10_000)(padded, 2, 2 + len(body))
    in_slices = make_long_commit_decoder(version, 10_000).read(padded, 2, 2 + len(body))
    assert run_at_once(in_slices) == ours
    common = decode(request_type(COMMIT, version), body, 0, len(body), 10_000)
    assert (ours.group_id, ours.member_id) == (common.group_id, common.member_id)
    assert ours.generation_id_or_member_epoch == common.generation_id_or_member_epoch
    assert ours.group_instance_id == getattr(common, "group_instance_id", None)
    assert ours.retention_ms == getattr(common, "retention_time", -1)
    assert [
        (
            topic.name,
            topic.topic_id,
            list(topic.offsets.rows()),
        )
        for topic in ours.topics
    ] == [
        (
            getattr(topic, "name", None),
            (topic.topic_id or bytes(16)) if hasattr(topic, "topic_id") else None,
            [
                (
                    row.partition_index,
                    row.committed_offset,
                    max(-1, getattr(row, "committed_leader_epoch", -1)),
                    row.committed_metadata or "",
                )
                for row in topic.partitions
            ],
        )
        for topic in common.topics
    ]


def none_if_negative(value: int) -> int | None:
    return None if value < 0 else value


@pytest.mark.parametrize("version", [8, 9, 10])
@given(data=st.data())
def test_commit_is_read_alike(version: int, data: st.DataObject) -> None:
    request = data.draw(commits(version))
    check_commit_read(version, encode(type(request), request))


def make_commit(version: int, topics: int, partitions: int) -> bytes:
    wire = request_schema(COMMIT, version)
    rows = tuple(
        wire.OffsetCommitRequestPartition(
            partition_index=number, committed_offset=9, committed_metadata=""
        )
        for number in range(partitions)
    )
    which: dict[str, Any] = {"topic_id": b"t" * 16} if version >= 10 else {"name": "topic"}
    request = wire.OffsetCommitRequest(
        group_id="group",
        generation_id_or_member_epoch=3,
        member_id="member",
        topics=(wire.OffsetCommitRequestTopic(partitions=rows, **which),) * topics,
    )
    return encode(type(request), request)


LENGTHS = [(1, 126), (1, 127), (1, 9_999), (1, 10_000), (126, 1), (127, 1), (300, 2), (5_000, 1),
           (5_001, 1), (0, 0), (3, 0)]  # fmt: skip
"""Topics, and partitions of each; two and three bytes long, and more than may be."""


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(("topics", "partitions"), LENGTHS)
def test_a_commit_of_many_is_read_alike(version: int, topics: int, partitions: int) -> None:
    whole = make_commit(version, topics, partitions)
    check_commit_read_or_refused(version, whole)
    if len(whole) > 20_000:
        return
    # Lengths are in the first bytes: those of the group, the member, the topics, the partitions.
    for at in range(14, min(60, len(whole))):
        for value in (0, 1, 127, 128, 129, 200, 255):
            body = bytearray(whole)
            body[at] = value
            check_commit_read_or_refused(version, bytes(body))


@pytest.mark.parametrize("version", [9, 10])
def test_broken_commit_is_never_read_as_another(version: int) -> None:
    """With any byte changed: what the fast decoder accepts, the generic one accepts too."""
    whole = make_commit(version, 2, 2)
    for at in range(len(whole)):
        for value in (0, 1, 2, 3, 6, 127, 128, 255):
            body = bytearray(whole)
            body[at] = value
            check_commit_read_or_refused(version, bytes(body))


def check_commit_read_or_refused(version: int, body: bytes) -> None:
    try:
        decode(request_type(COMMIT, version), body, 0, len(body), 10_000)
    except DecodeError:
        with pytest.raises(DecodeError):
            make_commit_decoder(version, 10_000)(body + b"\x00" * 40, 0, len(body))
        in_slices = make_long_commit_decoder(version, 10_000)
        with pytest.raises(DecodeError):
            run_at_once(in_slices.read(body + b"\x00" * 40, 0, len(body)))
    else:
        check_commit_read(version, body)


@pytest.mark.parametrize("version", [8, 9, 10])
@given(
    results=st.lists(
        st.tuples(
            long_texts,
            uuids.filter(any),
            st.lists(st.tuples(int32s, st.sampled_from(ErrorCode)), max_size=150),
        ),
        max_size=3,
    )
)
def test_commit_response_is_written_alike(version: int, results: list[Any]) -> None:
    topics = [
        TopicResult(
            TopicName(name),
            TopicId(topic_id),
            tuple(PartitionResult(partition, code) for partition, code in rows),
        )
        for name, topic_id, rows in results
    ]
    wire = response_schema(COMMIT, version)
    entity = wire.OffsetCommitResponse(
        throttle_time=0,
        topics=[
            wire.OffsetCommitResponseTopic(
                partitions=[
                    wire.OffsetCommitResponsePartition(partition_index=partition, error_code=code)
                    for partition, code in rows
                ],
                **({"topic_id": topic_id} if version >= 10 else {"name": name}),
            )
            for name, topic_id, rows in results
        ],
    )
    assert encode_commit_response(topics, version) == encode(type(entity), entity)


def test_kafkas_own_messages_are_read_alike() -> None:
    checked = 0
    for row in load_vectors():
        body = bytes.fromhex(row["body"])
        if (row["apiKey"], row["direction"]) == (HEARTBEAT, "request"):
            check_heartbeat_read(row["version"], body)
            checked += 1
        elif (row["apiKey"], row["direction"]) == (COMMIT, "request"):
            check_commit_read(row["version"], body)
            checked += 1
    assert checked == 55


def test_what_real_clients_sent_to_kafka_is_read_alike() -> None:
    """Java, librdkafka, kafka-python, aiokafka and franz-go, recorded before a real broker."""
    seen = dict.fromkeys((HEARTBEAT, COMMIT), 0)
    for row in load_exchanges():
        if row["apiKey"] not in seen:
            continue
        seen[row["apiKey"]] += 1
        data = bytes.fromhex(row["request"])
        body = data[body_position(row["apiKey"], row["version"], data) :]
        if row["apiKey"] == HEARTBEAT:
            check_heartbeat_read(row["version"], body)
        else:
            check_commit_read(row["version"], body)
    assert seen == {HEARTBEAT: 572, COMMIT: 206}


def body_position(key: int, version: int, data: bytes) -> int:
    from gateway.headers import skip_header

    flexible = request_type(key, version).__header_schema__.__flexible__
    _, position = skip_header(data, 8, len(data), flexible)
    return position
