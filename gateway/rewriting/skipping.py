"""Steps over encoded entities without making anything of them; compiled from kio's schemas."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import Any, Final, TypeAlias

from gateway.codec.decoding import Cursor, DecodeError, read_compact_length, skip_tags
from gateway.codec.kio_schema import FIXED, Field, compute_fields

Skip: TypeAlias = Callable[[Cursor], None]

_LENGTHS: Final = {2: struct.Struct(">h"), 4: struct.Struct(">i")}


def read_length(cursor: Cursor, width: int) -> int:
    """The length of a string (2 bytes) or of an array or bytes (4), before flexible versions."""
    pos = cursor.pos
    if pos + width > cursor.end:
        raise DecodeError(f"{width} bytes wanted, {cursor.end - pos} left")
    cursor.pos = pos + width
    length: int = _LENGTHS[width].unpack_from(cursor.data, pos)[0]
    return length


def read_array_length(cursor: Cursor, flexible: bool) -> int:
    """The length of an array; 0 for null."""
    length = read_compact_length(cursor) if flexible else read_length(cursor, 4)
    cursor.spend(max(length, 0))
    return max(length, 0)


def skip_bytes(cursor: Cursor, length: int) -> None:
    """Step over ``length`` bytes."""
    stop = cursor.pos + length
    if length < 0 or stop > cursor.end:
        raise DecodeError(f"a field has length {length}, but {cursor.end - cursor.pos} are left")
    cursor.pos = stop


def _skip_fixed(size: int) -> Skip:
    return lambda cursor: skip_bytes(cursor, size)


def _skip_text(flexible: bool, width: int) -> Skip:
    def skip(cursor: Cursor) -> None:
        length = read_compact_length(cursor) if flexible else read_length(cursor, width)
        if length > 0:
            skip_bytes(cursor, length)

    return skip


def _size_of(field: Field) -> int:
    return struct.calcsize(">" + FIXED[field.kafka_type])


def _is_fixed(field: Field) -> bool:
    return field.entity is None and field.kafka_type in FIXED


def _skip_element(field: Field, flexible: bool, nullable: bool) -> Skip:
    if field.entity is not None:
        skip_entity = compile_skip(field.entity)
        if not nullable:
            return skip_entity

        def skip_nullable(cursor: Cursor) -> None:
            if cursor.take(1)[0] < 0x80:
                skip_entity(cursor)

        return skip_nullable
    if _is_fixed(field):
        return _skip_fixed(_size_of(field))
    return _skip_text(flexible, 2 if field.kafka_type == "string" else 4)


def _skip_array(field: Field, flexible: bool) -> Skip:
    size = _size_of(field) if _is_fixed(field) else 0
    element = _skip_element(field, flexible, nullable=False)

    def skip(cursor: Cursor) -> None:
        length = read_array_length(cursor, flexible)
        if size:
            skip_bytes(cursor, size * length)
            return
        for _ in range(length):
            element(cursor)

    return skip


def compile_field(field: Field, flexible: bool) -> Skip:
    """A function that steps over an untagged field."""
    if field.is_array:
        return _skip_array(field, flexible)
    return _skip_element(field, flexible, field.nullable)


@cache
def compile_skip(entity: Any) -> Skip:
    """A function that steps over one entity of this class, with its tagged fields."""
    flexible: bool = entity.__flexible__
    rows = [row for row in compute_fields(entity) if row.tag is None]
    steps: list[Skip] = []
    for is_run, run in groupby(rows, lambda row: _is_fixed(row) and not row.is_array):
        fields = list(run)
        if is_run:
            steps.append(_skip_fixed(sum(map(_size_of, fields))))
        else:
            steps += [compile_field(field, flexible) for field in fields]
    if flexible:
        steps.append(skip_tags)

    def skip(cursor: Cursor) -> None:
        for step in steps:
            step(cursor)

    return skip


@cache
def compile_skip_to(entity: Any, name: str) -> Skip:
    """A function that steps over the fields before the untagged field ``name``; "" for all."""
    flexible: bool = entity.__flexible__
    steps: list[Skip] = []
    for row in compute_fields(entity):
        if row.name == name or row.tag is not None:
            break
        steps.append(compile_field(row, flexible))

    def skip(cursor: Cursor) -> None:
        for step in steps:
            step(cursor)

    return skip


@cache
def find_field(entity: Any, name: str) -> Field:
    """The field of this name."""
    return next(field for field in compute_fields(entity) if field.name == name)
