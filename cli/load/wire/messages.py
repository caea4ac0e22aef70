"""Requests of the Kafka protocol as frames, and their responses, by the codec of the gateway."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from gateway.codec.decoding import Cursor, DecodeError, decode, skip_tags
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import compute_fields, request_type, response_type

METADATA: Final = (3, 12)
OFFSET_COMMIT: Final = (8, 9)
FIND_COORDINATOR: Final = (10, 4)
JOIN_GROUP: Final = (11, 9)
HEARTBEAT: Final = (12, 4)
LEAVE_GROUP: Final = (13, 5)
SYNC_GROUP: Final = (14, 5)
SASL_HANDSHAKE: Final = (17, 1)
API_VERSIONS: Final = (18, 0)
CREATE_TOPICS: Final = (19, 7)
SASL_AUTHENTICATE: Final = (36, 2)
DELETE_GROUPS: Final = (42, 2)
CONSUMER_GROUP_HEARTBEAT: Final = (68, 1)
"""API keys with the versions that are spoken; those of Kafka 4.0, most of them of earlier ones."""

CLIENT_ID: Final = b"muster-load"
SIZE_BYTES: Final = 4

_HEAD: Final = struct.Struct(">ihhih")
_CORRELATION: Final = struct.Struct(">i")
_ELEMENTS_MAX: Final = 10_000_000


class MalformedAnswer(Exception):
    """Bytes that are not the response to the request that was sent."""


def make_request(api: tuple[int, int], **fields: Any) -> Any:
    """A request entity; fields left out have their defaults, entities in it are mappings."""
    return _make_entity(request_type(*api), fields)


def encode_frame(api: tuple[int, int], correlation_id: int, request: Any) -> bytes:
    """A request with its size and header."""
    target = request_type(*api)
    body = encode(target, request)
    tags = b"\0" if target.__flexible__ else b""
    size = _HEAD.size - SIZE_BYTES + len(CLIENT_ID) + len(tags) + len(body)
    head = _HEAD.pack(size, *api, correlation_id, len(CLIENT_ID))
    return b"".join((head, CLIENT_ID, tags, body))


def decode_answer(api: tuple[int, int], correlation_id: int, answer: bytes) -> Any:
    """The response in a frame, whose size comes first. Raises ``MalformedAnswer``."""
    target = response_type(*api)
    start = SIZE_BYTES + _CORRELATION.size
    if len(answer) < start or _CORRELATION.unpack_from(answer, SIZE_BYTES)[0] != correlation_id:
        raise MalformedAnswer(
            f"an answer of {len(answer)} bytes is not to request {correlation_id}"
        )
    try:
        if target.__header_schema__.__flexible__:
            cursor = Cursor(answer, start, len(answer), _ELEMENTS_MAX)
            skip_tags(cursor)
            start = cursor.pos
        return decode(target, answer, start, len(answer), _ELEMENTS_MAX)
    except DecodeError as error:
        raise MalformedAnswer(f"API {api[0]}, version {api[1]}: {error}") from error


@cache
def name_error(code: int) -> str:
    """Kafka's name of an error code."""
    from kio.schema.errors import ErrorCode

    try:
        return ErrorCode(code).name.upper()
    except ValueError:
        return f"ERROR_{code}"


def _make_entity(target: Any, values: Mapping[str, Any]) -> Any:
    entities = {row.name: row.entity for row in compute_fields(target)}
    made = {row.name: row.default for row in compute_fields(target)}
    for name, value in values.items():
        made[name] = _make_value(entities[name], value)
    return target(**made)


def _make_value(entity: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _make_entity(entity, value)
    if isinstance(value, list | tuple):
        return tuple(_make_value(entity, each) for each in value)
    return value
