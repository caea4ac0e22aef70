"""Requests and answers of simulated clients as bytes: each has the fields of its version."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Final

from gateway.codec.kio_schema import compute_fields, request_type
from tests.support.wire.frames import frame, parse

COMMIT: Final = 8
FETCH: Final = 9
JOIN: Final = 11
BEAT: Final = 12
LEAVE: Final = 13
SYNC: Final = 14
HEARTBEAT: Final = 68


@cache
def _defaults(entity: type) -> dict[str, Any]:
    return {row.name: row.default for row in compute_fields(entity)}


@cache
def row_type(key: int, version: int, *path: str) -> Any:
    """The class of the elements of an array of a request."""
    entity = request_type(key, version)
    for name in path:
        entity = next(row.entity for row in compute_fields(entity) if row.name == name)
    return entity


def make_row(row: Any, /, **fields: Any) -> Any:
    """An element of an array; what is not given is the default of its type."""
    return row(**(_defaults(row) | fields))


def encode_request(
    key: int, version: int, correlation_id: int, client_id: bytes, fields: dict[str, Any]
) -> bytes:
    """A whole frame. Fields that the version lacks are left out."""
    entity = request_type(key, version)
    defaults = _defaults(entity)
    values = defaults | {name: value for name, value in fields.items() if name in defaults}
    return frame(key, version, correlation_id, entity(**values), client_id.decode())


def read_correlation_id(data: bytes) -> int:
    """Of an answer without its size."""
    (correlation_id,) = struct.unpack_from(">i", data)
    return int(correlation_id)


def decode_answer(key: int, version: int, data: bytes) -> Any:
    """The entity of an answer without its size."""
    return parse(key, version, data)[1]
