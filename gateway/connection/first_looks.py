"""Checks on a connection's first bytes and on frame lengths, before anything is buffered."""

from __future__ import annotations

from typing import Final

from gateway.headers import FIXED_BYTES

_TLS_HANDSHAKE: Final = 0x16
_HTTP_METHODS: Final = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"CONN", b"PRI ")


def find_other_protocol(data: bytes) -> tuple[str, str] | None:
    """Recognise TLS or HTTP by the first bytes: a refusal's slug and message, or ``None``."""
    if data[0] == _TLS_HANDSHAKE:
        return "tls", "TLS handshake on a plaintext port: set the client's protocol to PLAINTEXT"
    if data[:4] in _HTTP_METHODS:
        return "http", "HTTP request on the Kafka port"
    return None


def find_length_fault(length: int, limit_name: str, limit: int) -> str | None:
    """Why a frame of this length is refused; ``None`` if it is allowed."""
    if length < 0:
        return f"the frame length {length} is negative"
    if length > limit:
        return f"the frame length {length} exceeds {limit_name}={limit}"
    if length < FIXED_BYTES:
        return f"the frame length {length} is below that of a request header"
    return None
