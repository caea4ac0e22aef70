"""Requests in bytes as kio's classes describe them, with errors of structure where wanted.

Not the server's own encoder: that one refuses what is wrong, and this one is to write it. Each
count, length, number and tag section is a place; a request is written once to number its places,
and again with errors in some of them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Collection
from typing import Any

from gateway.codec.kio_schema import FIXED, Field, compute_fields
from tests.fuzz.pool import EXTREMES

_COUNTS = (0, -1, -2, 1, 127, 128, 100_000, 250_001, 2**31 - 1, -(2**31))
_SIZES = {"b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8}


def varint(value: int) -> bytes:
    """An unsigned varint; below 0 as 32 bits."""
    value &= 0xFFFF_FFFF if value < 0 else 0xFFFF_FFFF_FFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Writer:
    """Writes one request; ``broken`` are the numbers of the places that are to be wrong."""

    def __init__(self, rng: random.Random, broken: Collection[int] = ()) -> None:
        self.out = bytearray()
        self.places = 0
        self._rng = rng
        self._broken = frozenset(broken)

    def write_entity(self, kind: Any, entity: Any, flexible: bool) -> None:
        """All fields of an entity, and its tag section where the version has them."""
        tagged = []
        for row in compute_fields(kind):
            value = getattr(entity, row.name)
            if row.tag is None:
                self._write_field(row, value, flexible)
            elif value != row.default:
                tagged.append((row, value))
        if flexible:
            self._write_tags(tagged)

    def write_string(self, value: str | None, flexible: bool) -> None:
        """A string with its length."""
        self._write_sized(None if value is None else value.encode(), "string", flexible)

    def write_tags(self) -> None:
        """A tag section without tags that are known."""
        self._write_tags([])

    def _is_wrong(self) -> bool:
        self.places += 1
        return self.places - 1 in self._broken

    def _write_field(self, row: Field, value: Any, flexible: bool) -> None:
        if row.is_array:
            self._write_array(row, value, flexible)
        elif row.entity is not None:
            if row.nullable:
                self.out += b"\xff" if value is None else b"\x01"
            if value is not None:
                self.write_entity(row.entity, value, flexible)
        else:
            self._write_plain(row.kafka_type, value, flexible)

    def _write_array(self, row: Field, value: Any, flexible: bool) -> None:
        count = -1 if value is None else len(value)
        if self._is_wrong():
            count = self._rng.choice((count + 1, count - 1, *_COUNTS))
        self.out += varint(count + 1) if flexible else struct.pack(">i", count)
        for item in value or ():
            if row.entity is not None:
                self.write_entity(row.entity, item, flexible)
            else:
                self._write_plain(row.kafka_type, item, flexible)

    def _write_plain(self, kafka_type: str, value: Any, flexible: bool) -> None:
        if kafka_type not in FIXED:
            encoded = value.encode() if isinstance(value, str) else value
            self._write_sized(encoded, kafka_type, flexible)
            return
        letter = FIXED[kafka_type]
        if letter == "16s":
            self.out += value or bytes(16)
        elif letter in _SIZES and self._is_wrong():
            wrong = self._rng.choice(EXTREMES[_SIZES[letter]])
            self.out += wrong.to_bytes(_SIZES[letter], "big", signed=True)
        else:
            self.out += struct.pack(">" + letter, value)

    def _write_sized(self, value: bytes | None, kafka_type: str, flexible: bool) -> None:
        length = -1 if value is None else len(value)
        if self._is_wrong():
            length = self._rng.choice((length + 1, length - 1, *_COUNTS))
        if flexible:
            self.out += varint(length + 1)
        elif kafka_type == "string":
            self.out += struct.pack(">h", max(-(2**15), min(length, 2**15 - 1)))
        else:
            self.out += struct.pack(">i", length)
        self.out += value or b""

    def _write_tags(self, tagged: list[tuple[Field, Any]]) -> None:
        sections = []
        for row, value in tagged:
            inner = Writer(self._rng)
            inner._write_field(row, value, True)
            sections.append((row.tag, bytes(inner.out)))
        if not self._is_wrong():
            self.out += varint(len(sections))
            for tag, data in sections:
                self.out += varint(tag or 0) + varint(len(data)) + data
            return
        rng = self._rng
        match rng.randrange(5):
            case 0:  # unknown tags, which are to be skipped
                extra = rng.choice((1, 3, 500))
                self.out += varint(extra)
                self.out += b"".join(varint(90 + n) + b"\x04abcd" for n in range(extra))
            case 1:  # the same tag twice
                self.out += varint(2) + b"\x00\x01a" * 2
            case 2:  # out of order
                self.out += varint(2) + b"\x05\x01a" + b"\x01\x01a"
            case 3:  # longer than what is there
                self.out += varint(1) + varint(7) + varint(rng.choice((2**31 - 1, 2**32 - 1, 500)))
            case _:
                self.out += varint(rng.choice((2**31 - 1, 2**35, 10**6)))


def write_request(
    rng: random.Random, key: int, version: int, correlation: int, entity: Any, errors: int
) -> bytes:
    """A whole frame with so many errors of structure (0: a valid one)."""
    places = _write(rng, key, version, correlation, entity, ()).places
    chosen = rng.sample(range(places), min(errors, places))
    body = bytes(_write(rng, key, version, correlation, entity, chosen).out)
    if errors and rng.random() < 0.25:
        body = body[: rng.randrange(8, len(body))] if rng.random() < 0.7 else body + b"\0" * 9
    return struct.pack(">i", len(body)) + body


def _write(
    rng: random.Random,
    key: int,
    version: int,
    correlation: int,
    entity: Any,
    broken: Collection[int],
) -> Writer:
    writer = Writer(rng, broken)
    writer.out += struct.pack(">hhi", key, version, correlation)
    # The client id has an int16 length also in flexible headers.
    writer.write_string("fuzz", flexible=False)
    flexible: bool = type(entity).__header_schema__.__flexible__
    if flexible:
        writer.write_tags()
    writer.write_entity(type(entity), entity, type(entity).__flexible__)
    return writer
