"""Encodes requests and decodes responses, with plain field values."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from kio.serial import entity_reader

from gateway.codec.kio_schema import compute_fields, request_type, response_type
from tests.support.wire.codec import decode, encode


def make_entity(target: Any, values: Mapping[str, Any]) -> Any:
    """An entity of a type, and the entities in it; fields left out have their defaults.

    Entities are mappings, or existing entities; lists become tuples.
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
    """A request entity; fields left out have their defaults."""
    return make_entity(request_type(key, version), fields)


def frame(key: int, version: int, correlation_id: int, request: Any, client_id: str = "c") -> bytes:
    """A whole request: size, header, body. ``request`` is an entity or the bytes of a body."""
    target = request_type(key, version)
    header = target.__header_schema__
    values = {
        "request_api_key": key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    names = {row.name for row in compute_fields(header)}
    made = header(**{name: value for name, value in values.items() if name in names})
    body = request if isinstance(request, bytes) else encode(target, request)
    data = encode(header, made) + body
    return struct.pack(">i", len(data)) + data


def make_frame(key: int, version: int, /, *, correlation_id: int = 1, **fields: Any) -> bytes:
    """A whole request from plain values."""
    return frame(key, version, correlation_id, make_request(key, version, **fields))


def parse(key: int, version: int, data: bytes) -> tuple[int, Any]:
    """(correlation id, entity) of a response without its size."""
    target = response_type(key, version)
    header, start = entity_reader(target.__header_schema__)(data, 0)
    return int(header.correlation_id), decode(target, data, start)
