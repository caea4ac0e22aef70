"""SaslHandshake and SaslAuthenticate as a client sends them, in their versions without tags.

SaslHandshake has version 1, so that all tokens have a request around them; SaslAuthenticate has
version 1 too, the first that tells when the session ends.
"""

from __future__ import annotations

import struct
from typing import Final

from gateway.sasl.logins import HandshakeAnswer, TokenAnswer
from model.errors import ErrorCode

_HANDSHAKE: Final = 17
_AUTHENTICATE: Final = 36
_VERSION: Final = 1
_HEADER: Final = struct.Struct(">ihhi")
_CLIENT_ID: Final = b"\x00\x06muster"
_MECHANISMS_MAX: Final = 100
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")


class Malformed(Exception):
    """An answer that is not understood."""


def encode_handshake(correlation_id: int, mechanism: str) -> bytes:
    """A frame, size included."""
    name = mechanism.encode()
    return _frame(_HANDSHAKE, correlation_id, _INT16.pack(len(name)) + name)


def encode_token(correlation_id: int, token: bytes) -> bytes:
    """A frame, size included."""
    return _frame(_AUTHENTICATE, correlation_id, _INT32.pack(len(token)) + token)


def _frame(key: int, correlation_id: int, body: bytes) -> bytes:
    size = _HEADER.size - 4 + len(_CLIENT_ID) + len(body)
    return _HEADER.pack(size, key, _VERSION, correlation_id) + _CLIENT_ID + body


def decode_handshake(frame: bytes, correlation_id: int) -> HandshakeAnswer:
    """The answer in a frame. Raises ``Malformed``."""
    reader = _Reader(frame, correlation_id)
    code = reader.read_code()
    count = reader.read_number(_INT32)
    if not 0 <= count <= _MECHANISMS_MAX:
        raise Malformed(f"{count} mechanisms")
    return HandshakeAnswer(code, tuple(reader.read_text() or "" for _ in range(count)))


def decode_token(frame: bytes, correlation_id: int) -> TokenAnswer:
    """The answer in a frame. Raises ``Malformed``."""
    reader = _Reader(frame, correlation_id)
    code, message = reader.read_code(), reader.read_text()
    token = reader.read_bytes(_INT32) or b""
    return TokenAnswer(code, message or None, token, max(0, reader.read_number(_INT64)))


class _Reader:
    """Reads fields one after another."""

    __slots__ = ("_frame", "_pos")

    def __init__(self, frame: bytes, correlation_id: int) -> None:
        self._frame = frame
        self._pos = 4
        if self.read_number(_INT32) != correlation_id:
            raise Malformed("the answer is to another request")

    def read_number(self, kind: struct.Struct) -> int:
        try:
            number: int = kind.unpack_from(self._frame, self._pos)[0]
        except struct.error:
            raise Malformed("the answer is cut short") from None
        self._pos += kind.size
        return number

    def read_code(self) -> ErrorCode:
        number = self.read_number(_INT16)
        try:
            return ErrorCode(number)
        except ValueError:
            return ErrorCode.UNKNOWN_SERVER_ERROR

    def read_bytes(self, kind: struct.Struct) -> bytes | None:
        size = self.read_number(kind)
        if size < 0:
            return None
        end = self._pos + size
        if end > len(self._frame):
            raise Malformed("the answer is cut short")
        found, self._pos = self._frame[self._pos : end], end
        return found

    def read_text(self) -> str | None:
        found = self.read_bytes(_INT16)
        return None if found is None else found.decode("utf-8", "replace")
