"""Encodes and decodes bodies with kio's own writers and readers, independent of the server.

Entities are kio's classes with plain values, like those of the server's codec: milliseconds for
times (``None`` for none), 16 bytes for UUIDs (``None`` for the zero one), ints for error codes.
"""

from __future__ import annotations

import datetime
import io
import uuid
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from gateway.codec.kio_schema import Field, compute_fields

Convert = Callable[[Any], Any]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


def encode(target: Any, entity: Any) -> bytes:
    """Encode an entity of plain values, of any version of the class, as ``target`` does."""
    out = io.BytesIO()
    entity_writer(target)(out, _typed(target)(entity))
    return out.getvalue()


def decode(target: Any, data: bytes, start: int = 0) -> Any:
    """Decode an entity to plain values; no bytes may follow it."""
    entity, size = entity_reader(target)(data, start)
    assert start + size == len(data), f"bytes follow a {target.__name__}"
    return _plain(target)(entity)


class _Milliseconds:
    """A time in the form that kio asks for: exact, and longer than a ``timedelta`` can be."""

    def __init__(self, value: int) -> None:
        self._value = value

    def total_seconds(self) -> Fraction:
        return Fraction(self._value, 1_000)


@cache
def _typed(target: Any) -> Convert:
    """Convert plain values to those that kio writes."""
    return _compile(target, _to_typed)


@cache
def _plain(target: Any) -> Convert:
    """Convert what kio reads to plain values."""
    return _compile(target, _to_plain)


def _compile(target: Any, converter: Callable[[Field], Convert]) -> Convert:
    rows = [(row.name, row.default, _for_all(row, converter)) for row in compute_fields(target)]
    is_as_it_is = all(turn is _same for *_, turn in rows)

    def convert(entity: Any) -> Any:
        if is_as_it_is and type(entity) is target:
            return entity
        return target(
            **{name: turn(getattr(entity, name, default)) for name, default, turn in rows}
        )

    return convert


def _for_all(row: Field, converter: Callable[[Field], Convert]) -> Convert:
    turn = converter(row)
    if turn is _same:
        return _same
    if row.is_array:
        return lambda items: None if items is None else tuple(map(turn, items))
    return lambda value: None if value is None else turn(value)


def _same(value: Any) -> Any:
    return value


def _to_typed(row: Field) -> Convert:
    match row.kafka_type:
        case "timedelta_i32" | "timedelta_i64":
            return _Milliseconds
        case "datetime_i64":
            return lambda value: None if value < 0 else _EPOCH + value * _MILLISECOND
        case "uuid":
            return lambda value: uuid.UUID(bytes=value)
        case "error_code":
            return ErrorCode
    return _same if row.entity is None else _typed(row.entity)


def _to_plain(row: Field) -> Convert:
    match row.kafka_type:
        case "timedelta_i32" | "timedelta_i64":
            return lambda value: value // _MILLISECOND
        case "datetime_i64":
            return lambda value: (value - _EPOCH) // _MILLISECOND
        case "uuid":
            return lambda value: value.bytes if value.int else None
        case "error_code":
            return int
    return _same if row.entity is None else _plain(row.entity)
