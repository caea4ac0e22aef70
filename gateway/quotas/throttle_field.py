"""Where responses say for how long a client is throttled."""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from gateway.codec.kio_schema import compute_fields, response_type

_PRODUCE: Final = 0
_API_VERSIONS: Final = 18
_OFFSET_DELETE: Final = 47
_DELEGATION_TOKENS: Final = range(38, 42)
"""Passed on to a cluster, with the field behind others: theirs is left as the cluster said."""
_FIELD: Final = "throttle_time"
_INT32: Final = struct.Struct(">i")
_ERROR_CODE_BYTES: Final = 2
_KEY_BYTES: Final = 6
"""An API key, and its lowest and highest version."""


def set_throttle_ms(key: int, version: int, body: bytes, throttle_ms: int) -> bytes:
    """The response body with this throttle time; unchanged if the version has no field for it."""
    at = _find(key, version, body)
    if at is None:
        return body
    return body[:at] + _INT32.pack(throttle_ms) + body[at + _INT32.size :]


@cache
def _has_field(key: int, version: int) -> bool:
    return key not in _DELEGATION_TOKENS and any(
        field.name == _FIELD for field in compute_fields(response_type(key, version))
    )


@cache
def _is_flexible(key: int, version: int) -> bool:
    return bool(response_type(key, version).__flexible__)


def _find(key: int, version: int, body: bytes) -> int | None:
    if not _has_field(key, version):
        return None
    if key == _PRODUCE:
        # The last field, before an empty section of tagged fields.
        return len(body) - _INT32.size - _is_flexible(key, version)
    if key == _API_VERSIONS:
        return _find_behind_keys(body, is_flexible=_is_flexible(key, version))
    return _ERROR_CODE_BYTES if key == _OFFSET_DELETE else 0


def _find_behind_keys(body: bytes, *, is_flexible: bool) -> int:
    """Behind the array of API keys, each of which may have tagged fields: none are sent."""
    at = _ERROR_CODE_BYTES
    if not is_flexible:
        (count,) = _INT32.unpack_from(body, at)
        return at + _INT32.size + int(count) * _KEY_BYTES
    size = shift = 0
    while True:
        byte = body[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return at + (size - 1) * (_KEY_BYTES + 1)
