"""Requests are encoded, and responses decoded, in any version, as kio itself does it."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.core.state.steps import run_at_once
from gateway.codec.client_frames import (
    API_VERSIONS,
    ClientRequest,
    NoCommonVersion,
    choose_version,
    decode_response,
    encode_request,
    known_versions,
    read_correlation_id,
)
from gateway.codec.decoding import DecodeError
from gateway.codec.kio_schema import compute_fields, response_type
from tests.support.wire.codec import encode
from tests.support.wire.frames import frame, make_entity, make_request

JOIN, METADATA, COMMIT = 11, 3, 8
JOIN_FIELDS: dict[str, Any] = {
    "group_id": "g",
    "session_timeout": 10_000,
    "rebalance_timeout": 60_000,
    "member_id": "m",
    "group_instance_id": "i",
    "protocol_type": "consumer",
    "protocols": ({"name": "range", "metadata": b"\x00\x01"},),
    "reason": "because",
}


def respond(key: int, version: int, **fields: Any) -> bytes:
    target = response_type(key, version)
    names = {row.name for row in compute_fields(target)}
    header = target.__header_schema__
    entity = make_entity(target, {name: fields[name] for name in fields if name in names})
    return encode(header, header(correlation_id=9)) + encode(target, entity)


@pytest.mark.parametrize("version", known_versions(JOIN))
def test_a_request_has_the_bytes_that_kio_writes(version: int) -> None:
    made = encode_request(ClientRequest(JOIN, JOIN_FIELDS), version, 7, b"muster")
    target = type(make_request(JOIN, version))
    names = {row.name for row in compute_fields(target)}
    given = {name: JOIN_FIELDS[name] for name in JOIN_FIELDS if name in names}
    expected = frame(JOIN, version, 7, make_request(JOIN, version, **given), "muster")
    assert made == expected


def test_missing_fields_take_their_defaults_in_parts_too() -> None:
    row = {"partition_index": 3, "committed_offset": 5}
    fields = {"group_id": "g", "topics": [{"name": "t", "partitions": [row]}]}
    made = encode_request(ClientRequest(COMMIT, fields), 9, 1, b"c")
    assert made == frame(COMMIT, 9, 1, make_request(COMMIT, 9, **fields))


def test_a_field_that_no_version_has_is_a_slip() -> None:
    with pytest.raises(AssertionError, match="groupid"):
        encode_request(ClientRequest(JOIN, {"groupid": "g"}), 9, 1, b"c")


@pytest.mark.parametrize("version", known_versions(METADATA))
def test_a_response_is_decoded_to_plain_values(version: int) -> None:
    row = {"node_id": 4, "host": "h", "port": 9092}
    data = respond(METADATA, version, brokers=(row,), cluster_id="c")
    answer = run_at_once(decode_response(METADATA, version, data))
    assert (answer.brokers[0].node_id, answer.brokers[0].port) == (4, 9092)
    assert read_correlation_id(data) == 9


def test_a_long_response_is_decoded_in_slices() -> None:
    rows = tuple({"node_id": each, "host": "h", "port": 1} for each in range(5_000))
    data = respond(METADATA, 12, brokers=rows)
    steps = decode_response(METADATA, 12, data)
    assert next(steps) is None
    assert len(run_at_once(steps).brokers) == 5_000


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    data = respond(API_VERSIONS, 0, error_code=35, api_keys=({"api_key": 18, "max_version": 2},))
    answer = run_at_once(decode_response(API_VERSIONS, 3, data))
    assert (answer.error_code, answer.api_keys[0].max_version) == (35, 2)


def _read(version: int, data: bytes) -> Any:
    read_correlation_id(data)
    return run_at_once(decode_response(METADATA, version, data))


@pytest.mark.parametrize("version", known_versions(METADATA))
def test_a_response_cut_anywhere_is_no_response(version: int) -> None:
    data = respond(METADATA, version, brokers=({"node_id": 4, "host": "h", "port": 9092},))
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            _read(version, data[:end])


@pytest.mark.parametrize(
    ("served", "version_max", "expected"),
    [
        (range(99), None, 13),
        (range(6), None, 5),
        (range(2, 99), 4, 4),
        (range(13, 20), None, 13),
    ],
)
def test_the_newest_common_version_is_chosen(
    served: range, version_max: int | None, expected: int
) -> None:
    request = ClientRequest(METADATA, {}, version_max)
    assert choose_version(request, {METADATA: served}) == expected


@pytest.mark.parametrize(
    ("served", "version_max"), [(range(14, 20), None), (range(9, 12), 8), (range(0), None)]
)
def test_no_common_version(served: range, version_max: int | None) -> None:
    with pytest.raises(NoCommonVersion, match="Metadata"):
        choose_version(ClientRequest(METADATA, {}, version_max), {METADATA: served})
    with pytest.raises(NoCommonVersion, match="does not serve Metadata"):
        choose_version(ClientRequest(METADATA, {}), {})
