"""Decodes requests into kio's entity classes, holding plain values.

Input is untrusted: every length is checked against the remaining bytes before anything is
allocated, the number of array elements per request is bounded, unknown tagged fields are skipped
(KIP-482), and any malformed input raises ``DecodeError``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.codec.kio_schema import FIXED, Field, compute_fields

ZERO_UUID: Final = bytes(16)
STRING_BYTES_MAX: Final = 32_767


class DecodeError(Exception):
    """The bytes are not a message of this API and version."""


class Cursor:
    """A position in ``data``; ``elements`` is how many more array elements the request may have."""

    __slots__ = ("data", "elements", "end", "pos")

    def __init__(self, data: bytes, pos: int, end: int, elements: int) -> None:
        self.data = data
        self.pos = pos
        self.end = end
        self.elements = elements

    def take(self, length: int) -> bytes:
        """The next ``length`` bytes."""
        pos = self.pos
        stop = pos + length
        if length < 0 or stop > self.end:
            raise DecodeError(f"a field has length {length}, but {self.end - pos} bytes are left")
        self.pos = stop
        return self.data[pos:stop]

    def spend(self, elements: int) -> None:
        """Count array elements against the request's limit."""
        self.elements -= elements
        if self.elements < 0:
            raise DecodeError("the request has more array elements than allowed")


Step: TypeAlias = Callable[[Cursor], Any]


def read_unsigned_varint(cursor: Cursor) -> int:
    """An unsigned varint of at most five bytes."""
    data, pos, end = cursor.data, cursor.pos, cursor.end
    value = shift = 0
    while pos < end:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            cursor.pos = pos
            return value
        shift += 7
        if shift > 28:
            break
    raise DecodeError("a varint is too long or truncated")


def read_compact_length(cursor: Cursor) -> int:
    """The length of a compact string or array; -1 for null."""
    pos = cursor.pos
    if pos < cursor.end:
        byte = cursor.data[pos]
        if byte < 0x80:
            cursor.pos = pos + 1
            return byte - 1
    return read_unsigned_varint(cursor) - 1


def _fixed_reader(letter: str) -> Step:
    unpack = struct.Struct(">" + letter)
    size = unpack.size

    def read(cursor: Cursor) -> Any:
        pos = cursor.pos
        stop = pos + size
        if stop > cursor.end:
            raise DecodeError(f"{size} bytes wanted, {cursor.end - pos} left")
        cursor.pos = stop
        return unpack.unpack_from(cursor.data, pos)[0]

    return read


_read_int8: Final = _fixed_reader("b")
_read_int16: Final = _fixed_reader("h")
_read_int32: Final = _fixed_reader("i")


def _check_null(length: int, nullable: bool, name: str) -> bool:
    """Whether a length means null; raises ``DecodeError`` if null is not allowed."""
    if length >= 0:
        return False
    if length != -1 or not nullable:
        raise DecodeError(f"{name} is null or has length {length}")
    return True


def read_compact_text(cursor: Cursor) -> str | None:
    """A compact string; ``None`` for null."""
    length = read_compact_length(cursor)
    if length <= 0:
        return None if length else ""
    return take_text(cursor, length, "a string")


def take_text(cursor: Cursor, length: int, name: str) -> str:
    """A string of ``length`` bytes; like Kafka, allow no more than an int16 can express."""
    if length > STRING_BYTES_MAX:
        raise DecodeError(f"{name} has {length} bytes, more than {STRING_BYTES_MAX}")
    try:
        return cursor.take(length).decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"{name} is not valid UTF-8") from error


def skip_tags(cursor: Cursor) -> None:
    """Skip the tagged fields of an entity that defines none."""
    pos = cursor.pos
    if pos < cursor.end and cursor.data[pos] == 0:
        cursor.pos = pos + 1
        return
    last, count = -1, read_unsigned_varint(cursor)
    cursor.spend(count)
    for _ in range(count):
        tag = read_unsigned_varint(cursor)
        if tag <= last:
            raise DecodeError(f"tagged field {tag} is out of order")
        last = tag
        cursor.take(read_unsigned_varint(cursor))


def _bytes_reader(field: Field, flexible: bool, nullable: bool) -> Step:
    name = field.name
    length_of: Step
    if flexible:
        length_of = read_compact_length
    elif field.kafka_type == "string":
        length_of = _read_int16
    else:
        length_of = _read_int32

    def read_bytes(cursor: Cursor) -> bytes | None:
        length: int = length_of(cursor)
        if length < 0 and _check_null(length, nullable, name):
            return None
        return cursor.take(length)

    def read_text(cursor: Cursor) -> str | None:
        length: int = length_of(cursor)
        if length < 0 and _check_null(length, nullable, name):
            return None
        return take_text(cursor, length, name)

    return read_text if field.kafka_type == "string" else read_bytes


def _read_uuid(cursor: Cursor) -> bytes | None:
    value = cursor.take(16)
    return None if value == ZERO_UUID else value


def compile_element_reader(field: Field, flexible: bool, nullable: bool) -> Step:
    """A reader of one value of the field's type, or of one element of an array field."""
    if field.entity is not None:
        read_entity = compile_reader(field.entity)
        if not nullable:
            return read_entity

        def read_nullable(cursor: Cursor) -> Any:
            return None if _read_int8(cursor) < 0 else read_entity(cursor)

        return read_nullable
    if field.kafka_type == "uuid":
        return _read_uuid
    if field.kafka_type in FIXED:
        return _fixed_reader(FIXED[field.kafka_type])
    return _bytes_reader(field, flexible, nullable)


def is_number_array(field: Field) -> bool:
    """Whether the field is an array of numbers, which is unpacked at once."""
    letter = FIXED.get(field.kafka_type, "")
    return field.is_array and field.entity is None and letter not in ("", "16s")


def read_array_length(cursor: Cursor, field: Field, flexible: bool) -> int | None:
    """Read an array's length and count its elements; ``None`` for a null array."""
    length: int = read_compact_length(cursor) if flexible else _read_int32(cursor)
    nullable = field.nullable and field.kafka_type != "uuid"
    if length < 0 and _check_null(length, nullable, field.name):
        return None
    cursor.spend(length)
    return length


def _array_reader(field: Field, flexible: bool) -> Step:
    letter = FIXED.get(field.kafka_type, "")
    is_numbers = is_number_array(field)
    width = struct.calcsize(">" + letter) if is_numbers else 1
    element = compile_element_reader(field, flexible, nullable=False)

    def read(cursor: Cursor) -> tuple[Any, ...] | None:
        length = read_array_length(cursor, field, flexible)
        if length is None:
            return None
        if is_numbers:
            return struct.unpack(f">{length}{letter}", cursor.take(length * width))
        return tuple([element(cursor) for _ in range(length)])

    return read


def _field_reader(field: Field, flexible: bool) -> Step:
    if field.is_array:
        return _array_reader(field, flexible)
    return compile_element_reader(field, flexible, field.nullable and field.tag is None)


def _tagged_reader(tagged: list[Field], flexible: bool) -> Callable[[Cursor, dict[str, Any]], None]:
    readers = {
        field.tag: (
            field.name,
            _bytes_reader(field, flexible, field.nullable)
            if field.kafka_type in ("string", "bytes", "records") and not field.is_array
            else _field_reader(field, flexible),
        )
        for field in tagged
    }

    def read(cursor: Cursor, values: dict[str, Any]) -> None:
        last, count = -1, read_unsigned_varint(cursor)
        cursor.spend(count)
        for _ in range(count):
            tag, size = read_unsigned_varint(cursor), read_unsigned_varint(cursor)
            stop = cursor.pos + size
            if tag <= last or stop > cursor.end:
                raise DecodeError(f"tagged field {tag} is out of order or longer than the message")
            last = tag
            known = readers.get(tag)
            if known is not None:
                values[known[0]] = known[1](cursor)
                if cursor.pos != stop:
                    raise DecodeError(f"tagged field {known[0]} does not have the declared size")
            cursor.pos = stop

    return read


def _run_reader(run: list[Field]) -> Callable[[Cursor, dict[str, Any]], None]:
    """A reader of consecutive fixed-width fields, which are unpacked at once."""
    unpack = struct.Struct(">" + "".join(FIXED[field.kafka_type] for field in run))
    names = [field.name for field in run]
    size = unpack.size

    def read(cursor: Cursor, values: dict[str, Any]) -> None:
        pos = cursor.pos
        stop = pos + size
        if stop > cursor.end:
            raise DecodeError(f"{size} bytes wanted, {cursor.end - pos} left")
        cursor.pos = stop
        values.update(zip(names, unpack.unpack_from(cursor.data, pos), strict=True))

    return read


def _member_reader(field: Field, flexible: bool) -> Callable[[Cursor, dict[str, Any]], None]:
    name, step = field.name, _field_reader(field, flexible)

    def read(cursor: Cursor, values: dict[str, Any]) -> None:
        values[name] = step(cursor)

    return read


def _is_in_run(field: Field) -> bool:
    return field.kafka_type in FIXED and field.kafka_type != "uuid" and not field.is_array


class Parts(NamedTuple):
    """The compiled reader of an entity: steps for a field or a run of them, then the tagged fields.

    A step has its field, or ``None`` for a run of fixed-width fields.
    """

    defaults: dict[str, Any]
    steps: list[tuple[Field | None, Callable[[Cursor, dict[str, Any]], None]]]
    read_tags: Callable[[Cursor, dict[str, Any]], None]


@cache
def compile_parts(entity: Any) -> Parts:
    """Compile the reader of an entity class."""
    rows = compute_fields(entity)
    flexible: bool = entity.__flexible__
    tagged = [row for row in rows if row.tag is not None]
    defaults = {row.name: row.default for row in tagged}
    read_tagged = _tagged_reader(tagged, flexible)
    steps: list[tuple[Field | None, Callable[[Cursor, dict[str, Any]], None]]] = []
    for is_run, fields in groupby((row for row in rows if row.tag is None), _is_in_run):
        if is_run:
            steps.append((None, _run_reader(list(fields))))
        else:
            steps += [(field, _member_reader(field, flexible)) for field in fields]

    def read_tags(cursor: Cursor, values: dict[str, Any]) -> None:
        if flexible:
            pos = cursor.pos
            if pos < cursor.end and cursor.data[pos] == 0:
                cursor.pos = pos + 1
            else:
                read_tagged(cursor, values)

    return Parts(defaults, steps, read_tags)


@cache
def compile_reader(entity: Any) -> Step:
    """A function that reads one entity of this class at the cursor."""
    defaults, parts, read_tags = compile_parts(entity)
    steps = [step for _, step in parts]

    def read(cursor: Cursor) -> Any:
        values = dict(defaults)
        for step in steps:
            step(cursor, values)
        read_tags(cursor, values)
        return entity(**values)

    return read


def decode(entity: Any, data: bytes, pos: int, end: int, elements: int) -> Any:
    """Decode the entity at the start of ``data[pos:end]``; raises ``DecodeError``.

    Trailing bytes are ignored, as in Kafka: librdkafka 2.16 sends three when it requests the
    metadata of all topics.
    """
    return compile_reader(entity)(Cursor(data, pos, end, elements))
