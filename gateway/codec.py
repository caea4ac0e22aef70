"""The codec of the Kafka wire: kio's classes for the shape, our reader and writer for the bytes."""

from __future__ import annotations

from typing import Any

from gateway.decoding import DecodeError, decode
from gateway.encoding import Encoded, encode
from gateway.schema import request_schema, request_type, response_schema, response_type

__all__ = (
    "DecodeError",
    "Encoded",
    "decode_request",
    "encode_response",
    "request_schema",
    "response_schema",
)


def decode_request(
    key: int, version: int, data: bytes, pos: int, end: int, elements: int = 1_000_000
) -> Any:
    """The request body in ``data[pos:end]``; raises ``DecodeError``.

    ``elements`` bounds the array elements, numbers apart, of the whole request.
    """
    return decode(request_type(key, version), data, pos, end, elements)


def encode_response(key: int, version: int, response: Any) -> bytes:
    """The body of ``response``, an entity of the newest version or of this one."""
    return encode(response_type(key, version), response)
