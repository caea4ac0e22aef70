"""The login in Muster's own name: SaslHandshake, then SaslAuthenticate (KIP-152, KIP-368)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from gateway.codec.client_frames import ClientRequest
from security.client.client_login import ClientLogin
from security.sasl.conversation import NotAuthenticated
from upstream.cluster.cluster import ClusterUnreachable, NotServed
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.cluster.connections.connection import Connection
from upstream.cluster.connections.opening_faults import OpeningFault, Trouble

HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36
_ILLEGAL_SASL_STATE: Final = 34
_TURNS_MAX: Final = 5
_LIFETIME_USED: Final = 0.8
"""How much of a session is used before the next login: Kafka's clients take 85 to 95 percent."""


async def log_in(connection: Connection, where: str, settings: ClusterSettings) -> None:
    """Log in if the settings say so, and note when to do it again. Raises ``OpeningFault``."""
    if not settings.security.protocol.uses_sasl:
        return
    timeout_ms = settings.connect_timeout_ms
    try:
        login = settings.security.make_login()
        await _shake_hands(connection, settings.security.mechanism, where, timeout_ms)
        lifetime_ms = await _converse(connection, login, timeout_ms)
    except NotAuthenticated as error:
        raise OpeningFault(Trouble.NOT_AUTHENTICATED, f"{where}: {error.reason}") from None
    except OpeningFault:
        raise
    except NotServed as error:
        raise OpeningFault(Trouble.NO_SASL, f"{where}: {error}") from None
    except ClusterUnreachable as error:
        is_silent = isinstance(connection.trouble, TimeoutError)
        trouble = Trouble.NO_ANSWER if is_silent else Trouble.NOT_AUTHENTICATED
        raise OpeningFault(trouble, f"{where}: {error} during the login") from None
    now_s = asyncio.get_running_loop().time()
    connection.login_due_s = (
        now_s + lifetime_ms / 1_000 * _LIFETIME_USED if lifetime_ms > 0 else None
    )


async def _shake_hands(connection: Connection, mechanism: str, where: str, timeout_ms: int) -> None:
    # From version 1 on the tokens are in SaslAuthenticate; before, they are bare.
    request = ClientRequest(HANDSHAKE, {"mechanism": mechanism}, version_max=1)
    answer = await connection.ask(request, timeout_ms)
    if answer.error_code == _ILLEGAL_SASL_STATE:
        raise OpeningFault(Trouble.NO_SASL, f"{where} does not speak SASL")
    if answer.error_code:
        offered = ", ".join(answer.mechanisms)[:200] or "none"
        raise OpeningFault(
            Trouble.NO_SASL, f"{where} does not serve {mechanism}, its mechanisms are: {offered}"
        )


async def _converse(connection: Connection, login: ClientLogin, timeout_ms: int) -> int:
    """The lifetime of the session in ms, 0 for no end. Raises ``NotAuthenticated``."""
    token: bytes | None = login.first()
    for _ in range(_TURNS_MAX):
        request = ClientRequest(AUTHENTICATE, {"auth_bytes": token})
        answer: Any = await connection.ask(request, timeout_ms)
        if answer.error_code:
            said = " ".join((answer.error_message or f"error {answer.error_code}").split())
            raise NotAuthenticated(said[:300])
        token = login.answer(answer.auth_bytes)
        if token is None:
            return int(getattr(answer, "session_lifetime", 0))
    raise NotAuthenticated("the login does not end")
