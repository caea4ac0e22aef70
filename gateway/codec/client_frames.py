"""Requests as a client sends them: encoded in a version, and their responses decoded."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from coordinator.runtime.loop.slices import Steps
from gateway.codec import commit_frames
from gateway.codec.decoding import Cursor, DecodeError, decode, skip_tags
from gateway.codec.decoding_in_slices import LEAST_BYTES, decode_in_slices
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import Field, compute_fields, request_type, response_type

SIZE_BYTES: Final = 4
"""The size that starts every frame, which does not count itself."""
API_VERSIONS: Final = 18
ELEMENTS_MAX: Final = 5_000_000
"""Elements of the arrays of one response."""
_HEADER_TAGS_MAX: Final = 1_000
_UNSUPPORTED_VERSION: Final = (35).to_bytes(2, "big")


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request by API key, with its fields by kio's names as plain values.

    An element of an array of entities is a mapping of its fields. Fields that a version lacks are
    dropped; missing ones take their default. ``version_max`` bounds the version.
    """

    key: int
    fields: Mapping[str, Any]
    version_max: int | None = None


class NoCommonVersion(Exception):
    """The broker serves no version of the API that can be encoded here."""


def choose_version(request: ClientRequest, served: Mapping[int, range]) -> int:
    """The newest version that the broker serves and that is known. Raises ``NoCommonVersion``."""
    known = known_versions(request.key)
    theirs = served.get(request.key)
    if theirs is None or not theirs:
        raise NoCommonVersion(f"the broker does not serve {api_name(request.key)}")
    newest = min(known[-1], theirs[-1])
    if request.version_max is not None:
        newest = min(newest, request.version_max)
    if newest < max(known[0], theirs[0]):
        raise NoCommonVersion(
            f"the broker serves versions {theirs[0]} to {theirs[-1]} of {api_name(request.key)}, "
            f"and none of them can be used"
        )
    return newest


def api_name(key: int) -> str:
    """The name of an API in Kafka's words."""
    return api_key_map.get(key, f"api {key}").title().replace("_", "")


@cache
def known_versions(key: int) -> range:
    """The versions of which requests can be encoded and responses decoded."""
    kinds = schema_name_map[api_key_map[key]]
    versions = sorted(version for version, found in kinds.items() if EntityType.request in found)
    return range(versions[0], versions[-1] + 1)


def encode_request(
    request: ClientRequest, version: int, correlation_id: int, client_id: bytes
) -> bytes:
    """The whole frame, size included."""
    target: Any = request_type(request.key, version)
    _check_names(request.key, request.fields)
    body = _encode_by_hand(request, version)
    if body is None:
        body = encode(target, _make_entity(target, request.fields))
    head = struct.pack(">hhih", request.key, version, correlation_id, len(client_id)) + client_id
    if target.__header_schema__.__flexible__:
        head += b"\x00"
    return struct.pack(">i", len(head) + len(body)) + head + body


def _encode_by_hand(request: ClientRequest, version: int) -> bytes | None:
    if request.key == commit_frames.KEY and version in commit_frames.VERSIONS:
        return commit_frames.encode_commit(request.fields)
    return None


def decode_response(key: int, version: int, frame: bytes) -> Steps[Any]:
    """Decode a frame without its size, in time slices if it is long. Raises ``DecodeError``."""
    if key == API_VERSIONS and frame[4:6] == _UNSUPPORTED_VERSION:
        # A broker that does not know the version answers in the first one (KIP-511).
        version = 0
    target: Any = response_type(key, version)
    cursor = Cursor(frame, 4, len(frame), _HEADER_TAGS_MAX)
    if target.__header_schema__.__flexible__:
        skip_tags(cursor)
    if len(frame) < LEAST_BYTES:
        if key == commit_frames.KEY and version in commit_frames.VERSIONS:
            commit = commit_frames.decode_commit_response(frame, cursor.pos, len(frame), version)
            if commit is not None:
                return commit
        return decode(target, frame, cursor.pos, len(frame), ELEMENTS_MAX)
    return (yield from decode_in_slices(target, frame, cursor.pos, len(frame), ELEMENTS_MAX))


def read_correlation_id(frame: bytes) -> int:
    """The correlation id that starts a response without its size. Raises ``DecodeError``."""
    if len(frame) < 4:
        raise DecodeError(f"the response has {len(frame)} bytes")
    return int.from_bytes(frame[:4], "big", signed=True)


def _make_entity(target: Any, values: Mapping[str, Any]) -> Any:
    made = {row.name: row.default for row in compute_fields(target)}
    for row in compute_fields(target):
        if row.name in values:
            made[row.name] = _make_value(row, values[row.name])
    return target(**made)


def _make_value(row: Field, value: Any) -> Any:
    if row.entity is None or value is None:
        return value
    if not row.is_array:
        return _make_entity(row.entity, value)
    return tuple([_make_entity(row.entity, item) for item in value])


def _check_names(key: int, fields: Mapping[str, Any]) -> None:
    """A field that no version has is a slip of the caller, which would otherwise be dropped."""
    unknown = fields.keys() - _all_names(key)
    assert not unknown, f"{api_name(key)} has no {sorted(unknown)}"


@cache
def _all_names(key: int) -> frozenset[str]:
    return frozenset(
        row.name
        for version in known_versions(key)
        for row in compute_fields(request_type(key, version))
    )
