"""OffsetCommit on the client's side: by hand as the generic codec does it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gateway.codec import commit_frames
from gateway.codec.client_frames import ELEMENTS_MAX, ClientRequest, encode_request
from gateway.codec.decoding import DecodeError, decode
from gateway.codec.kio_schema import response_type
from tests.support.wire.codec import encode
from tests.support.wire.frames import frame, make_entity, make_request

COMMIT = commit_frames.KEY
VERSIONS = pytest.mark.parametrize("version", commit_frames.VERSIONS)


def make_row(partition: int, offset: int, metadata: str | None = "") -> dict[str, Any]:
    return {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_leader_epoch": -1 if offset % 2 else 7,
        "committed_metadata": metadata,
    }


def make_fields(*topics: dict[str, Any], instance: str | None = "muster") -> dict[str, Any]:
    return {
        "group_id": "gruppe-ä",
        "generation_id_or_member_epoch": 12,
        "member_id": "m" * 200,
        "group_instance_id": instance,
        "topics": topics,
    }


@VERSIONS
@pytest.mark.parametrize(
    "fields",
    [
        make_fields(),
        make_fields({"name": "t", "partitions": []}, instance=None),
        make_fields({"name": "t", "partitions": [make_row(0, 5)]}),
        make_fields(
            {"name": "t" * 249, "partitions": [make_row(n, n << 30) for n in range(3_000)]},
            {"name": "u", "partitions": [make_row(1, 2, "text ü"), make_row(2, 3, None)]},
        ),
    ],
    ids=["nothing", "no-partition", "one", "many"],
)
def test_a_request_has_the_bytes_that_kio_writes(version: int, fields: dict[str, Any]) -> None:
    assert commit_frames.encode_commit(fields) is not None
    made = encode_request(ClientRequest(COMMIT, fields), version, 7, b"muster")
    assert made == frame(COMMIT, version, 7, make_request(COMMIT, version, **fields), "muster")


def test_what_is_not_given_is_left_to_the_generic_encoder() -> None:
    fields = make_fields({"name": "t", "partitions": [{"partition_index": 1}]})
    assert commit_frames.encode_commit(fields) is None


def make_response(version: int, *topics: tuple[str, int]) -> bytes:
    target = response_type(COMMIT, version)
    made = tuple(
        {
            "name": name,
            "partitions": tuple(
                {"partition_index": n, "error_code": -1 if n == 3 else 0} for n in range(count)
            ),
        }
        for name, count in topics
    )
    return encode(target, make_entity(target, {"throttle_time": 9, "topics": made}))


def decode_generic(data: bytes, version: int) -> Any:
    return decode(response_type(COMMIT, version), data, 0, len(data), ELEMENTS_MAX)


@VERSIONS
@pytest.mark.parametrize("topics", [(), (("t", 0),), (("t", 1),), (("tä", 1_500), ("u", 4))])
def test_a_response_is_decoded_as_any_other(version: int, topics: Any) -> None:
    data = make_response(version, *topics)
    made = commit_frames.decode_commit_response(data, 0, len(data), version)
    assert made == decode_generic(data, version)
    assert type(made) is response_type(COMMIT, version)


@VERSIONS
def test_what_it_decodes_of_bad_bytes_the_generic_decoder_does_too(version: int) -> None:
    good = make_response(version, ("topic", 5), ("u", 2))
    random = Random(version)
    decoded = 0
    for _ in range(3_000):
        data = bytearray(good[: random.choice([len(good), random.randrange(1, len(good))])])
        for _ in range(random.randrange(3)):
            data[random.randrange(len(data))] = random.randrange(256)
            if random.random() < 0.2:
                data.append(0)
        made = commit_frames.decode_commit_response(bytes(data), 0, len(data), version)
        if made is not None:
            decoded += 1
            assert made == decode_generic(bytes(data), version)
    assert decoded > 100


@VERSIONS
def test_tagged_fields_are_left_to_the_generic_decoder(version: int) -> None:
    good = make_response(version, ("t", 1))
    tagged = good[:-1] + b"\x01\x05\x01x"
    assert commit_frames.decode_commit_response(tagged, 0, len(tagged), version) is None
    assert decode_generic(tagged, version) == decode_generic(good, version)
    with pytest.raises(DecodeError):
        decode_generic(good[:-1], version)
