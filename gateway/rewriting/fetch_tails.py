"""Fetch responses that are too large to be held: their endpoints are found on the way, and hidden.

The size of a frame stands before it, so what is rewritten on the way must keep its length. The
endpoints of new leaders become a tagged field that no client knows. Clients then look the leader
up by its node id among the brokers of Metadata, or ask for Metadata again.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from gateway.codec.decoding import Cursor, DecodeError, read_unsigned_varint
from gateway.rewriting.naming import CannotRewrite
from gateway.rewriting.skipping import skip_bytes

TAIL_BYTES_MAX: Final = 64 * 1024
_ENDPOINTS_TAG: Final = 0
_UNKNOWN_TAG: Final = 0x7F
_VERSIONS: Final = range(16, 19)

Walk = Generator[int, bytes, None]
"""Yields how many bytes it wants, or, below zero, how many are of no interest."""


def _varint(most: int = 2**31 - 1) -> Generator[int, bytes, int]:
    value = shift = 0
    while True:
        byte = (yield 1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise CannotRewrite("a varint is too long")
    if value > most:
        raise CannotRewrite("a length is too large")
    return value


def _tags() -> Walk:
    for _ in range((yield from _varint())):
        yield from _varint()
        yield -(yield from _varint())


def _partition() -> Walk:
    # Index, error and three offsets.
    yield -30
    for _ in range((yield from _varint()) - 1):
        yield -16
        yield from _tags()
    # The preferred replica.
    yield -4
    yield -max(0, (yield from _varint()) - 1)
    yield from _tags()


def _walk_response() -> Walk:
    """From the header's tags to the tags at the end of the response."""
    yield from _tags()
    # Throttle time, error and session.
    yield -10
    for _ in range((yield from _varint()) - 1):
        # The topic's id.
        yield -16
        for _ in range((yield from _varint()) - 1):
            yield from _partition()
        yield from _tags()


class FetchTail:
    """The copy of one Fetch response, which comes in pieces.

    ``size`` bytes come after the correlation id.
    """

    def __init__(self, version: int, size: int) -> None:
        if version not in _VERSIONS:
            raise CannotRewrite(f"version {version} of Fetch is unknown")
        self._walk: Walk | None = _walk_response()
        self._want = next(self._walk)
        self._left = size
        self._tail = b""

    def feed(self, data: bytes) -> bytes:
        """What to send of the next bytes, which are no more than are left.

        Raises ``CannotRewrite``.
        """
        self._left -= len(data)
        pos = self._advance(data) if self._walk is not None else 0
        if self._walk is not None:
            if not self._left:
                raise CannotRewrite("a Fetch response ends too early")
            return data
        self._tail += data[pos:]
        if len(self._tail) > TAIL_BYTES_MAX:
            raise CannotRewrite("a Fetch response has too much after its topics")
        if self._left:
            return data[:pos]
        return data[:pos] + hide_endpoints(self._tail)

    def _advance(self, data: bytes) -> int:
        """Walk over the bytes, and return where the walk is over, or the end."""
        assert self._walk is not None
        pos, end, want = 0, len(data), self._want
        send = self._walk.send
        try:
            while pos < end or not want:
                if want > 0:
                    piece = data[pos : pos + 1]
                    pos += 1
                    want = send(piece)
                elif -want <= end - pos:
                    pos -= want
                    want = send(b"")
                else:
                    want += end - pos
                    pos = end
        except StopIteration:
            self._walk = None
        self._want = want
        return pos


def hide_endpoints(tail: bytes) -> bytes:
    """The tags at the end of a response, the endpoints made unknown; raises ``CannotRewrite``."""
    hidden = bytearray(tail)
    cursor = Cursor(tail, 0, len(tail), len(tail))
    try:
        count = read_unsigned_varint(cursor)
        for number in range(count):
            at = cursor.pos
            tag = read_unsigned_varint(cursor)
            size = read_unsigned_varint(cursor)
            start = cursor.pos
            skip_bytes(cursor, size)
            if tag == _ENDPOINTS_TAG:
                if number != count - 1:
                    raise CannotRewrite("a tagged field follows the endpoints")
                hidden[at] = _UNKNOWN_TAG
                hidden[start : cursor.pos] = bytes(size)
    except DecodeError as error:
        raise CannotRewrite(str(error)) from error
    return bytes(hidden)
