"""Requests and answers as bytes, by the project's own codec, from plain values."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from gateway.codec.decoding import decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import compute_fields, request_type, response_type

_ELEMENTS_MAX = 10_000_000


def make_entity(target: Any, values: Mapping[str, Any]) -> Any:
    """An entity of a type, and those in it; what is not named has its default.

    Entities are mappings, or entities that are made already; lists become tuples.
    """
    fields = {row.name: row for row in compute_fields(target)}
    unknown = values.keys() - fields.keys()
    assert not unknown, f"{target.__name__} has no {unknown}"
    made = {name: row.default for name, row in fields.items()}
    for name, value in values.items():
        made[name] = _make_value(fields[name].entity, value)
    return target(**made)


def _make_value(entity: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return make_entity(entity, value)
    if not isinstance(value, list | tuple):
        return value
    if entity is None:
        return tuple(value)
    return tuple(_make_value(entity, item) for item in value)


def make_request(key: int, version: int, /, **fields: Any) -> Any:
    """A request entity; what is not given is the default of its type."""
    return make_entity(request_type(key, version), fields)


def frame(key: int, version: int, correlation_id: int, request: Any, client_id: str = "c") -> bytes:
    """A whole request: size, header, body. ``request`` is an entity or the bytes of a body."""
    target = request_type(key, version)
    body = request if isinstance(request, bytes) else encode(target, request)
    name = client_id.encode()
    header = struct.pack(">hhih", key, version, correlation_id, len(name)) + name
    if target.__header_schema__.__flexible__:
        header += b"\x00"
    return struct.pack(">i", len(header) + len(body)) + header + body


def make_frame(key: int, version: int, /, *, correlation_id: int = 1, **fields: Any) -> bytes:
    """A whole request from plain values."""
    return frame(key, version, correlation_id, make_request(key, version, **fields))


def parse(key: int, version: int, data: bytes) -> tuple[int, Any]:
    """(correlation id, entity) of an answer without its size."""
    target = response_type(key, version)
    pos = 5 if target.__header_schema__.__flexible__ else 4
    entity = decode(target, data, pos, len(data), _ELEMENTS_MAX)
    return struct.unpack_from(">i", data)[0], entity
