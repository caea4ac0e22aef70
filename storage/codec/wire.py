"""Primitive types of Kafka's protocol: readers take bytes and a position, writers a bytearray.

These functions may raise any exception of ``BAD_INPUT``. The public functions of this package
convert it with ``compute_codec_error``; a context manager would cost more than the code it guards.
No reader allocates more than the input can fill.
"""

from __future__ import annotations

import struct

from storage.codec.errors import CodecError, TruncatedError

INT8 = struct.Struct(">b")
INT16 = struct.Struct(">h")
UINT16 = struct.Struct(">H")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")

_VARINT_BYTES = tuple(
    bytes((value,)) if value < 0x80 else bytes((value & 0x7F | 0x80, value >> 7))
    for value in range(1 << 14)
)

TagList = tuple[tuple[int, bytes], ...]


BAD_INPUT = (
    CodecError,
    IndexError,
    struct.error,
    UnicodeError,
    OverflowError,
    TypeError,
    AttributeError,
)
"""Exceptions that the primitives raise for malformed bytes, values or JSON."""


def compute_codec_error(what: str, error: Exception) -> CodecError:
    """Convert an exception of ``BAD_INPUT``; ``what`` names the item being read or written."""
    if isinstance(error, CodecError):
        return type(error)(f"{what}: {error}")
    if isinstance(error, IndexError):
        return TruncatedError(f"{what}: the input ends too early")
    return CodecError(f"{what}: {error}")


# ------------------------------------------------------------------------------------- varints


def encode_varint(value: int) -> bytes:
    """Encode an unsigned varint of any size."""
    if 0 <= value < 1 << 14:
        return _VARINT_BYTES[value]
    if value < 0:
        raise CodecError(f"{value} is negative")
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_zigzag(value: int) -> bytes:
    """Encode a signed varint: zigzag, up to 64 bits."""
    return encode_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits; returns it and the position after it."""
    byte = data[pos]
    if byte < 0x80:
        return byte, pos + 1
    value = byte & 0x7F
    shift = 7
    while True:
        pos += 1
        byte = data[pos]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise CodecError(f"varint before byte {pos} exceeds 32 bits")
            return value, pos + 1
        shift += 7
        if shift > 28:
            raise CodecError(f"varint before byte {pos} is longer than 5 bytes")


def read_zigzag(data: bytes, pos: int, max_bytes: int = 5) -> tuple[int, int]:
    """Read a signed varint (``max_bytes`` 5) or varlong (10); returns it and the next position."""
    byte = data[pos]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    value = byte & 0x7F
    for index in range(1, max_bytes):
        byte = data[pos + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if value >> (32 if max_bytes == 5 else 64):
                break
            return (value >> 1) ^ -(value & 1), pos + index + 1
    raise CodecError(f"varint at byte {pos} is too long")


# --------------------------------------------------------------------------- lengths and bytes


def take(data: bytes, pos: int, length: int) -> bytes:
    """Return exactly ``length`` bytes from ``pos`` on; raises ``TruncatedError`` otherwise."""
    if length < 0:
        raise CodecError(f"length {length} at byte {pos} is negative")
    if pos + length > len(data):
        raise TruncatedError(f"{length} bytes expected at byte {pos}, {len(data) - pos} left")
    return data[pos : pos + length]


def check_count(data: bytes, pos: int, count: int, min_size: int) -> None:
    """Raise unless ``count`` elements of at least ``min_size`` bytes can follow ``pos``."""
    if count < 0:
        raise CodecError(f"null or negative array at byte {pos}")
    if count * min_size > len(data) - pos:
        raise TruncatedError(f"{count} elements expected at byte {pos}, {len(data) - pos} left")


# --------------------------------------------------------------------------------- tagged fields


def read_tags(data: bytes, pos: int) -> tuple[TagList, int]:
    """Read raw tagged fields, which must be in ascending order; returns them and the position."""
    count, pos = read_varint(data, pos)
    if not count:
        return (), pos
    check_count(data, pos, count, 2)
    tags = []
    previous = -1
    for _ in range(count):
        tag, pos = read_varint(data, pos)
        size, pos = read_varint(data, pos)
        if tag <= previous:
            raise CodecError(f"tag {tag} follows tag {previous}")
        previous = tag
        tags.append((tag, take(data, pos, size)))
        pos += size
    return tuple(tags), pos


def write_tags(out: bytearray, tags: TagList | list[tuple[int, bytes]]) -> None:
    """Write tagged fields, which must be in ascending order."""
    out += encode_varint(len(tags))
    previous = -1
    for tag, data in tags:
        if tag <= previous:
            raise CodecError(f"tag {tag} follows tag {previous}")
        previous = tag
        out += encode_varint(tag)
        out += encode_varint(len(data))
        out += data
