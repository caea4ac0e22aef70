"""What is seen of a connection and of a frame before anything of it is kept."""

from __future__ import annotations

from typing import Final

from gateway.headers import FIXED_BYTES

_TLS_HANDSHAKE: Final = 0x16
_HTTP_METHODS: Final = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"CONN", b"PRI ")


def find_other_protocol(data: bytes) -> tuple[str, str] | None:
    """Whether a connection that begins so is not Kafka's: a slug, and a line for people."""
    if data[0] == _TLS_HANDSHAKE:
        return "tls", "it begins with a TLS handshake: this port speaks plaintext"
    if data[:4] in _HTTP_METHODS:
        return "http", "it speaks HTTP: this is the Kafka port"
    return None


def find_length_fault(length: int, limit_name: str, limit: int) -> str | None:
    """Why a frame of this announced length may not come; ``None`` where it may."""
    if length < 0:
        return f"a frame of {length} bytes was announced"
    if length > limit:
        return f"a frame of {length} bytes was announced, {limit_name}={limit}"
    if length < FIXED_BYTES:
        return f"a frame of {length} bytes is shorter than its header"
    return None
