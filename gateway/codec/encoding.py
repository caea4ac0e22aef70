"""Encodes responses in the request's version.

A response is built with kio's classes of the newest version and encoded in any version: a writer is
compiled for each pair of (newest class, class of the version). Consecutive fixed-width fields are
packed by one ``struct`` call, which also writes an empty tag section as a pad byte. kio's own
writer needs a call, a ``struct`` and two buffers per field, ten times the cost.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from gateway.codec.kio_schema import FIXED, Field, compute_fields

Append: TypeAlias = Callable[[bytes], Any]
Write: TypeAlias = Callable[[Any, Append], None]
"""(value, append): append the value's bytes."""


class Encoded(bytes):
    """An encoded array, including its length, which is written as it is."""


def encode_unsigned_varint(value: int) -> bytes:
    """The unsigned varint of ``value``, which must not be negative."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SHORT_LENGTHS = tuple(encode_unsigned_varint(length + 1) for length in range(1024))
_pack_int16 = struct.Struct(">h").pack
_pack_int32 = struct.Struct(">i").pack


def compact_length(length: int) -> bytes:
    """The length of a compact string or array."""
    return _SHORT_LENGTHS[length] if length < 1024 else encode_unsigned_varint(length + 1)


def _bytes_writer(field: Field, flexible: bool, nullable: bool) -> Write:
    name = field.name
    pack_length = (
        compact_length if flexible else _pack_int16 if field.kafka_type == "string" else _pack_int32
    )
    null = b"\x00" if flexible else pack_length(-1)

    def write(value: str | bytes | None, append: Append) -> None:
        if value is None:
            if not nullable:
                raise ValueError(f"{name} must not be null in this version")
            append(null)
            return
        encoded = value.encode() if isinstance(value, str) else value
        append(pack_length(len(encoded)))
        append(encoded)

    return write


def _fixed_writer(kafka_type: str) -> Write:
    pack = struct.Struct(">" + FIXED[kafka_type]).pack
    null: Any = b"" if kafka_type == "uuid" else -1

    def write(value: Any, append: Append) -> None:
        append(pack(null if value is None else value))

    return write


def _element_writer(field: Field, source: Any, flexible: bool, nullable: bool) -> Write:
    """A writer of one value of the field's type, or of one element of an array field."""
    if field.entity is not None:
        write_entity = compile_writer(source or field.entity, field.entity)
        if not nullable:
            return write_entity

        def write_nullable(value: Any, append: Append) -> None:
            append(b"\xff" if value is None else b"\x01")
            if value is not None:
                write_entity(value, append)

        return write_nullable
    if field.kafka_type in FIXED:
        return _fixed_writer(field.kafka_type)
    return _bytes_writer(field, flexible, nullable)


def _array_writer(field: Field, source: Any, flexible: bool) -> Write:
    name, nullable = field.name, field.nullable
    pack_length = compact_length if flexible else _pack_int32
    null = b"\x00" if flexible else _pack_int32(-1)
    letter = FIXED.get(field.kafka_type, "")
    is_numbers = field.entity is None and letter not in ("", "16s")
    element = _element_writer(field, source, flexible, nullable=False)

    def write(items: Sequence[Any] | None, append: Append) -> None:
        if type(items) is Encoded:
            append(items)
            return
        if items is None:
            if not nullable:
                raise ValueError(f"{name} must not be null in this version")
            append(null)
            return
        append(pack_length(len(items)))
        if is_numbers:
            append(struct.pack(f">{len(items)}{letter}", *items))
            return
        for item in items:
            element(item, append)

    return write


def _field_writer(field: Field, source: Field | None, flexible: bool) -> Write:
    entity = source.entity if source is not None else None
    if field.is_array:
        return _array_writer(field, entity, flexible)
    return _element_writer(field, entity, flexible, field.nullable)


def _or_null(value: Any, null: Any) -> Any:
    return null if value is None else value


def _run_writer(run: list[Field], pad: bool) -> Write:
    """A writer that packs consecutive fixed-width fields at once.

    ``pad`` appends the zero byte of an empty tag section.
    """
    pack = struct.Struct(">" + "".join(FIXED[field.kafka_type] for field in run) + "x" * pad).pack
    get = attrgetter(*[field.name for field in run])
    nulls = [b"" if field.kafka_type == "uuid" else -1 for field in run]

    if len(run) == 1:

        def write_one(entity: Any, append: Append) -> None:
            value = get(entity)
            append(pack(nulls[0] if value is None else value))

        return write_one

    def write(entity: Any, append: Append) -> None:
        values = get(entity)
        if None in values:
            values = tuple(map(_or_null, values, nulls))
        append(pack(*values))

    return write


def _member_writer(field: Field, source: Field | None, flexible: bool) -> Write:
    """A writer of one field, or of its default if the newest version no longer has the field."""
    write_value = _field_writer(field, source, flexible)
    if source is None:
        parts: list[bytes] = []
        write_value(field.default, parts.append)
        constant = b"".join(parts)
        return lambda entity, append: append(constant)
    get = attrgetter(field.name)
    return lambda entity, append: write_value(get(entity), append)


def _tagged_writer(tagged: list[tuple[Field, Field]], flexible: bool) -> Write:
    """A writer of the tag section, which leaves out fields with their default value."""
    rows = []
    for field, source in tagged:
        write_value = _field_writer(field, source, flexible)
        parts: list[bytes] = []
        _field_writer(field, None, flexible)(field.default, parts.append)
        rows.append((field.name, source.default, b"".join(parts), write_value, field.tag or 0))

    def write(entity: Any, append: Append) -> None:
        sections: list[bytes] = []
        for name, default, encoded_default, write_value, tag in rows:
            value = getattr(entity, name)
            if value is default:
                continue
            parts: list[bytes] = []
            write_value(value, parts.append)
            encoded = b"".join(parts)
            if encoded != encoded_default:
                head = encode_unsigned_varint(tag) + encode_unsigned_varint(len(encoded))
                sections.append(head + encoded)
        append(encode_unsigned_varint(len(sections)))
        append(b"".join(sections))

    return write


class Part(NamedTuple):
    """The compiled writer of a part of an entity.

    For an untagged array of entities, ``field`` is the field in the target version and ``given``
    the field of the source class; they are ``None`` otherwise.
    """

    field: Field | None
    given: Field | None
    write: Write


@cache
def compile_parts(source: Any, target: Any) -> tuple[Part, ...]:
    """Compile the writers that encode an entity shaped like ``source`` as class ``target``."""
    given = {field.name: field for field in compute_fields(source)}
    rows = compute_fields(target)
    flexible: bool = target.__flexible__
    tagged = [(row, given[row.name]) for row in rows if row.tag is not None and row.name in given]
    pad = flexible and not tagged
    parts: list[Part] = []
    run: list[Field] = []
    for row in (row for row in rows if row.tag is None):
        if row.name in given and row.kafka_type in FIXED and not row.is_array:
            run.append(row)
            continue
        if run:
            parts.append(Part(None, None, _run_writer(run, pad=False)))
            run = []
        write = _member_writer(row, given.get(row.name), flexible)
        is_long = row.is_array and row.entity is not None and row.name in given
        parts.append(Part(row, given[row.name], write) if is_long else Part(None, None, write))
    if run:
        parts.append(Part(None, None, _run_writer(run, pad)))
    elif pad:
        parts.append(Part(None, None, lambda entity, append: append(b"\x00")))
    if tagged:
        parts.append(Part(None, None, _tagged_writer(tagged, flexible)))
    return tuple(parts)


@cache
def compile_writer(source: Any, target: Any) -> Write:
    """A function that encodes an entity shaped like ``source`` as class ``target``."""
    steps = [part.write for part in compile_parts(source, target)]
    if len(steps) == 1:
        return steps[0]

    def write(entity: Any, append: Append) -> None:
        for step in steps:
            step(entity, append)

    return write


def compile_rows_writer(
    source: Any, target: Any, *path: str
) -> tuple[Callable[[int], bytes], Write]:
    """The writers of the length and of one element of the array at ``path`` in class ``target``.

    The elements are entities shaped like ``source``.
    """
    for name in path[:-1]:
        target = _field_of(target, name).entity
    entity = _field_of(target, path[-1]).entity
    assert entity is not None, "arrays of numbers are written at once"
    return pack_length_of(target), compile_writer(source, entity)


def pack_length_of(target: Any) -> Callable[[int], bytes]:
    """The writer of array lengths in this class."""
    return compact_length if target.__flexible__ else _pack_int32


def _field_of(entity: Any, name: str) -> Field:
    return next(field for field in compute_fields(entity) if field.name == name)


def encode(target: Any, entity: Any) -> bytes:
    """Encode ``entity`` as class ``target``."""
    parts: list[bytes] = []
    source: Any = type(entity)
    compile_writer(source, target)(entity, parts.append)
    return b"".join(parts)
