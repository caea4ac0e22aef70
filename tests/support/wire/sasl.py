"""Showing who a client is, on a connection of the wire: SaslHandshake, then SaslAuthenticate."""

from __future__ import annotations

from typing import Any, Final

from tests.support.wire.connection import Connection

HANDSHAKE, AUTHENTICATE = 17, 36
PLAIN: Final = "PLAIN"


async def log_in(connection: Connection, user: str, password: str) -> Any:
    """By PLAIN; the answer to SaslAuthenticate, whose error code is not looked at."""
    shaken = await connection.ask(HANDSHAKE, 1, mechanism=PLAIN)
    assert not shaken.error_code, shaken
    shown = f"\0{user}\0{password}".encode()
    return await connection.ask(AUTHENTICATE, 2, auth_bytes=shown)
