"""The compiled codec where Kafka's own messages do not reach it."""

from __future__ import annotations

import pytest

from gateway.codec.decoding import DecodeError, decode
from gateway.codec.encoding import Encoded, compile_rows_writer, encode
from gateway.codec.kio_schema import request_schema, request_type, response_schema, response_type

FETCH, METADATA, VERSIONS = 1, 3, 18


def read(key: int, version: int, body: bytes) -> object:
    return decode(request_type(key, version), body, 0, len(body), 1_000)


def test_tagged_field_with_its_default_is_left_out() -> None:
    """Also where the default is given by an equal value that is another object."""
    wire = response_schema(VERSIONS)
    plain = wire.ApiVersionsResponse(error_code=0, api_keys=(), throttle_time=0)
    given = wire.ApiVersionsResponse(
        error_code=0,
        api_keys=[],
        throttle_time=0,
        supported_features=[],
        finalized_features_epoch=int("-1"),
        finalized_features=[],
    )
    expected = b"\x00\x00" + b"\x01" + bytes(4) + b"\x00"
    for entity in (plain, given):
        assert encode(response_type(VERSIONS, 4), entity) == expected


def fetch_body(tags: bytes) -> bytes:
    """A Fetch of nothing, version 16, up to its tagged fields."""
    wire = request_schema(FETCH, 16)
    request = wire.FetchRequest(
        max_wait=0,
        min_bytes=0,
        isolation_level=0,
        topics=(),
        forgotten_topics_data=(),
        rack_id="",
    )
    return encode(type(request), request)[:-1] + tags


def test_known_tagged_field_is_as_long_as_it_says() -> None:
    cluster = b"\x01\x00\x03\x03ab"
    assert read(FETCH, 16, fetch_body(cluster)).cluster_id == "ab"  # type: ignore[attr-defined]
    for tags in (b"\x01\x00\x04\x03abc", b"\x01\x00\x02\x03ab", b"\x01\x00\x00\x03ab"):
        with pytest.raises(DecodeError):
            read(FETCH, 16, fetch_body(tags))


def test_request_is_read_from_the_middle_of_what_came() -> None:
    """Bytes behind the end of a frame are never read."""
    body = fetch_body(b"\x00")
    data = b"zz" + body + b"\x00" * 50
    whole = decode(request_type(FETCH, 16), data, 2, 2 + len(body), 1_000)
    assert whole == read(FETCH, 16, body)
    for end in range(len(body)):
        with pytest.raises(DecodeError):
            decode(request_type(FETCH, 16), data, 2, 2 + end, 1_000)


def test_elements_of_a_request_are_bounded_over_all_its_arrays() -> None:
    topic = b"\x00\x01t"
    body = (5).to_bytes(4, "big") + topic * 5
    assert decode(request_type(METADATA, 1), body, 0, len(body), 5)
    with pytest.raises(DecodeError, match="elements"):
        decode(request_type(METADATA, 1), body, 0, len(body), 4)


def test_field_that_a_version_cannot_leave_out_is_not_written_as_null() -> None:
    wire = response_schema(METADATA)
    topic = wire.MetadataResponseTopic(
        error_code=0, name=None, topic_id=None, partitions=(), topic_authorized_operations=0
    )
    answer = wire.MetadataResponse(
        throttle_time=0,
        brokers=(),
        cluster_id=None,
        controller_id=1,
        topics=(topic,),
        error_code=0,
    )
    assert encode(response_type(METADATA, 12), answer)
    with pytest.raises(ValueError, match="name"):
        encode(response_type(METADATA, 9), answer)


@pytest.mark.parametrize("version", range(14))
def test_array_encoded_beforehand_is_the_array(version: int) -> None:
    wire = response_schema(METADATA)
    rows = tuple(
        wire.MetadataResponsePartition(
            error_code=0,
            partition_index=number,
            leader_id=1,
            leader_epoch=0,
            replica_nodes=(1,),
            isr_nodes=(1,),
            offline_replicas=(),
        )
        for number in range(300)
    )
    target = response_type(METADATA, version)
    pack_length, write = compile_rows_writer(
        wire.MetadataResponsePartition, target, "topics", "partitions"
    )
    parts = [pack_length(len(rows))]
    for row in rows:
        write(row, parts.append)
    answers = [
        wire.MetadataResponse(
            throttle_time=0,
            brokers=(),
            cluster_id="c",
            controller_id=1,
            topics=(
                wire.MetadataResponseTopic(
                    error_code=0,
                    name="t",
                    topic_id=b"t" * 16,
                    partitions=partitions,
                    topic_authorized_operations=0,
                ),
            ),
            error_code=0,
        )
        for partitions in (rows, Encoded(b"".join(parts)))
    ]
    assert encode(target, answers[0]) == encode(target, answers[1])
