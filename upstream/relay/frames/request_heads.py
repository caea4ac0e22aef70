"""What the head of a request frame says."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from gateway.codec.decoding import DecodeError
from gateway.codec.kio_schema import request_type
from gateway.headers import skip_header
from gateway.rewriting.api_versions import compute_offer
from upstream.relay.frames.splitting import HEAD_BYTES_MAX

PRODUCE_KEY: Final = 0
API_VERSIONS_KEY: Final = 18
HEAD_BYTES: Final = 14
"""Size, API key, version, correlation id and the length of the client id."""
_UNPACK: Final = struct.Struct(">hhih").unpack_from


class RequestHead(NamedTuple):
    """The fixed fields of a request's header."""

    key: int
    version: int
    correlation_id: int
    client_id_bytes: int


def read_head(data: bytes, pos: int) -> RequestHead:
    """Read the head of the frame at ``pos``, of which ``HEAD_BYTES`` are there."""
    return RequestHead(*_UNPACK(data, pos + 4))


@lru_cache(maxsize=4_096)
def is_relayed(key: int, version: int) -> bool:
    """Whether a request may be passed on: its response is known not to name anything unseen.

    A broker answers an ApiVersions request of any version.
    """
    return key == API_VERSIONS_KEY or bool(compute_offer(key, range(version, version + 1)))


def looks_like_request(head: RequestHead, size: int) -> bool:
    """Whether a frame is a request, where it may also be a token of a login (SaslHandshake v0).

    No mechanism's token starts with an API key and a version that exist and a client id that fits.
    """
    return is_relayed(head.key, head.version) and -1 <= head.client_id_bytes <= size - 10


def has_response(head: RequestHead, data: bytes, pos: int, end: int) -> bool | None:
    """Whether a Produce request is answered (acks other than 0); ``None`` if more has to be seen.

    Raises ``DecodeError``.
    """
    stop = min(end, pos + HEAD_BYTES_MAX)
    has_tags = bool(request_type(PRODUCE_KEY, head.version).__header_schema__.__flexible__)
    try:
        _, at = skip_header(data, pos + 12, stop, has_tags)
        at = _skip_text(data, at, stop, has_tags)
    except (DecodeError, IndexError):
        if stop - pos >= HEAD_BYTES_MAX:
            raise DecodeError("the head of a Produce request is too long") from None
        return None
    if at + 2 > stop:
        return None
    return data[at : at + 2] != b"\x00\x00"


def _skip_text(data: bytes, pos: int, end: int, compact: bool) -> int:
    """Step over a nullable string; it may end after ``end``."""
    if not compact:
        if pos + 2 > end:
            raise DecodeError("truncated")
        return pos + 2 + max(0, int.from_bytes(data[pos : pos + 2], "big", signed=True))
    value = shift = 0
    while True:
        if pos >= end or shift > 28:
            raise DecodeError("truncated")
        byte = data[pos]
        value |= (byte & 0x7F) << shift
        pos += 1
        shift += 7
        if byte < 0x80:
            return pos + max(0, value - 1)
