"""Response frames as a broker sends them."""

from __future__ import annotations

from typing import Any

from gateway.codec.kio_schema import response_type
from tests.support.wire.codec import encode
from tests.support.wire.frames import make_entity


def response_frame(key: int, version: int, correlation_id: int, /, **fields: Any) -> bytes:
    """A frame, size included; missing fields have their default."""
    response = response_type(key, version)
    tags = b"\x00" if response.__header_schema__.__flexible__ else b""
    body = encode(response, make_entity(response, fields))
    payload = correlation_id.to_bytes(4, "big", signed=True) + tags + body
    return len(payload).to_bytes(4, "big") + payload
