"""Field types of record schemas, except structs; each compiles to a codec.

Flexible versions use compact lengths: a varint of the length plus one, 0 for null.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from storage.codec import wire
from storage.codec.errors import CodecError
from storage.codec.wire import INT8, INT16, INT32, INT64, UINT16

Reader = Callable[[bytes, int], tuple[Any, int]]
Writer = Callable[[bytearray, Any], None]
Convert = Callable[[Any], Any]
LengthReader = Callable[[bytes, int], tuple[int, int]]
LengthWriter = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Compiled:
    """The codec of a type in one version, for bytes and JSON.

    ``min_size`` is the size of the smallest encoded value, in bytes.
    """

    read: Reader
    write: Writer
    to_json: Convert
    from_json: Convert
    min_size: int


class Kind(Protocol):
    """A type of Kafka's message language."""

    def compile(self, version: int, *, flexible: bool, nullable: bool = False) -> Compiled:
        """Compile the codec of this type for a message version."""
        ...


def check_json(value: Any, expected: type) -> Any:
    """Return the value; raises ``CodecError`` unless it has the expected JSON type."""
    if type(value) is not expected:
        raise CodecError(f"{value!r} should be {expected.__name__}")
    return value


def _identity(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class FixedInt:
    """A fixed-size integer."""

    layout: struct.Struct

    def compile(self, version: int, *, flexible: bool, nullable: bool = False) -> Compiled:
        unpack_from, pack, size = self.layout.unpack_from, self.layout.pack, self.layout.size

        def read(data: bytes, pos: int) -> tuple[Any, int]:
            return unpack_from(data, pos)[0], pos + size

        def write(out: bytearray, value: int) -> None:
            out += pack(value)

        return Compiled(read, write, _identity, lambda value: check_json(value, int), size)


# ------------------------------------------------------------------------------------- lengths


def _read_compact(data: bytes, pos: int) -> tuple[int, int]:
    length, pos = wire.read_varint(data, pos)
    return length - 1, pos


def _write_compact(length: int) -> bytes:
    return wire.encode_varint(length + 1)


def _fixed_length(layout: struct.Struct) -> tuple[LengthReader, LengthWriter, int]:
    unpack_from, size = layout.unpack_from, layout.size

    def read(data: bytes, pos: int) -> tuple[int, int]:
        return unpack_from(data, pos)[0], pos + size

    return read, layout.pack, size


def _length(layout: struct.Struct, flexible: bool) -> tuple[LengthReader, LengthWriter, int]:
    """The reader and the writer of a length, and its minimum size in bytes; -1 is null."""
    return (_read_compact, _write_compact, 1) if flexible else _fixed_length(layout)


def _or_null(convert: Convert, nullable: bool) -> Convert:
    if not nullable:
        return convert
    return lambda value: None if value is None else convert(value)


# ------------------------------------------------------------------------------ text and bytes


@dataclass(frozen=True, slots=True)
class String:
    """UTF-8 text; the length is an int16 unless compact."""

    def compile(self, version: int, *, flexible: bool, nullable: bool = False) -> Compiled:
        read_length, write_length, min_size = _length(INT16, flexible)

        def read(data: bytes, pos: int) -> tuple[Any, int]:
            length, pos = read_length(data, pos)
            end = pos + length
            if length < 0 or end > len(data):
                if length == -1 and nullable:
                    return None, pos
                wire.take(data, pos, length)
            return data[pos:end].decode(), end

        def read_compact(data: bytes, pos: int) -> tuple[Any, int]:
            length = data[pos]
            end = pos + length
            if 0 < length < 0x80 and end <= len(data):
                return data[pos + 1 : end].decode(), end
            if not length and nullable:
                return None, pos + 1
            return read(data, pos)

        def write(out: bytearray, value: str | None) -> None:
            if value is None and nullable:
                out += write_length(-1)
                return
            encoded = value.encode()  # type: ignore[union-attr]  # None: AttributeError
            out += write_length(len(encoded))
            out += encoded

        check = _or_null(lambda value: check_json(value, str), nullable)
        return Compiled(read_compact if flexible else read, write, _identity, check, min_size)


@dataclass(frozen=True, slots=True)
class Bytes:
    """Any bytes; the length is an int32 unless compact."""

    def compile(self, version: int, *, flexible: bool, nullable: bool = False) -> Compiled:
        read_length, write_length, min_size = _length(INT32, flexible)

        def read(data: bytes, pos: int) -> tuple[Any, int]:
            length, pos = read_length(data, pos)
            if length == -1 and nullable:
                return None, pos
            return wire.take(data, pos, length), pos + length

        def write(out: bytearray, value: bytes | None) -> None:
            if value is None and nullable:
                out += write_length(-1)
                return
            out += write_length(len(value))  # type: ignore[arg-type]  # None: TypeError
            out += value  # type: ignore[arg-type]  # not None

        to_json = _or_null(bytes_to_json, nullable)
        return Compiled(read, write, to_json, _or_null(bytes_from_json, nullable), min_size)


@dataclass(frozen=True, slots=True)
class Uuid:
    """16 bytes; in JSON, URL-safe base64 without padding, as in Kafka."""

    def compile(self, version: int, *, flexible: bool, nullable: bool = False) -> Compiled:
        def read(data: bytes, pos: int) -> tuple[Any, int]:
            return wire.take(data, pos, 16), pos + 16

        def write(out: bytearray, value: bytes) -> None:
            if len(value) != 16:
                raise CodecError(f"a UUID has 16 bytes, not {len(value)}")
            out += value

        return Compiled(read, write, uuid_to_json, uuid_from_json, 16)


def bytes_to_json(value: bytes) -> str:
    """Encode bytes as base64, as in Kafka's JSON."""
    return base64.b64encode(value).decode()


def bytes_from_json(value: Any) -> bytes:
    """Decode bytes from base64."""
    return _decode_base64(check_json(value, str), urlsafe=False)


def uuid_to_json(value: bytes) -> str:
    """Encode a UUID as URL-safe base64 without padding: 22 characters."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def uuid_from_json(value: Any) -> bytes:
    """Decode a UUID in Kafka's text form to its 16 bytes."""
    decoded = _decode_base64(check_json(value, str) + "==", urlsafe=True)
    if len(decoded) != 16:
        raise CodecError(f"{value!r} is not a UUID of 22 characters")
    return decoded


def _decode_base64(text: str, *, urlsafe: bool) -> bytes:
    try:
        return base64.b64decode(text, altchars=b"-_" if urlsafe else None, validate=True)
    except (binascii.Error, ValueError):
        raise CodecError(f"{text!r} is not base64") from None


# -------------------------------------------------------------------------------------- arrays


@dataclass(frozen=True, slots=True)
class Array:
    """A tuple of elements of one type; the length is an int32 unless compact."""

    of: Kind

    def compile(self, version: int, *, flexible: bool, nullable: bool = False) -> Compiled:
        element = self.of.compile(version, flexible=flexible)
        read_length, write_length, min_size = _length(INT32, flexible)
        if isinstance(self.of, FixedInt):
            read_all, write_all = _fixed_elements(self.of.layout)
        else:
            read_all, write_all = _elements(element)

        def read(data: bytes, pos: int) -> tuple[Any, int]:
            count, pos = read_length(data, pos)
            if count == 0:
                return (), pos
            if count == -1 and nullable:
                return None, pos
            wire.check_count(data, pos, count, element.min_size)
            return read_all(data, pos, count)

        def write(out: bytearray, value: tuple[Any, ...] | None) -> None:
            if value is None and nullable:
                out += write_length(-1)
                return
            out += write_length(len(value))  # type: ignore[arg-type]  # None: TypeError
            write_all(out, value)  # type: ignore[arg-type]  # not None

        def to_json(value: tuple[Any, ...]) -> list[Any]:
            return [element.to_json(item) for item in value]

        def from_json(value: Any) -> tuple[Any, ...]:
            return tuple(element.from_json(item) for item in check_json(value, list))

        return Compiled(
            read, write, _or_null(to_json, nullable), _or_null(from_json, nullable), min_size
        )


ElementsReader = Callable[[bytes, int, int], tuple[tuple[Any, ...], int]]
ElementsWriter = Callable[[bytearray, tuple[Any, ...]], None]


def _fixed_elements(layout: struct.Struct) -> tuple[ElementsReader, ElementsWriter]:
    code, size = layout.format[1:], layout.size

    def read(data: bytes, pos: int, count: int) -> tuple[tuple[Any, ...], int]:
        return struct.unpack_from(f">{count}{code}", data, pos), pos + count * size

    def write(out: bytearray, values: tuple[Any, ...]) -> None:
        out += struct.pack(f">{len(values)}{code}", *values)

    return read, write


def _elements(element: Compiled) -> tuple[ElementsReader, ElementsWriter]:
    read_one, write_one = element.read, element.write

    def read(data: bytes, pos: int, count: int) -> tuple[tuple[Any, ...], int]:
        values = []
        for _ in range(count):
            value, pos = read_one(data, pos)
            values.append(value)
        return tuple(values), pos

    def write(out: bytearray, values: tuple[Any, ...]) -> None:
        for value in values:
            write_one(out, value)

    return read, write


INT8_KIND = FixedInt(INT8)
INT16_KIND = FixedInt(INT16)
UINT16_KIND = FixedInt(UINT16)
INT32_KIND = FixedInt(INT32)
INT64_KIND = FixedInt(INT64)
STRING = String()
BYTES = Bytes()
UUID = Uuid()
