"""Checks a password or a token by a login at the cluster, on a connection for it alone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

import scramp

from coordinator.service.credentials.verifiers import CannotVerify
from gateway.sasl.logins import HandshakeAnswer, TokenAnswer
from model.errors import ErrorCode
from security.client.client_login import ClientLogin, make_login
from security.identity import Identity
from security.sasl.claimed_names import NameReader
from security.sasl.conversation import NotAuthenticated
from upstream.cluster.cluster import Cluster
from upstream.logins.passed_login import TIMEOUT_MS, PassedLogin

logger = logging.getLogger("muster.upstream")

T = TypeVar("T")

_MESSAGES_MAX: Final = 3


class ClusterLogins:
    """Logs in by one mechanism (``coordinator.service.credentials.verifiers.LoginVerifier``)."""

    def __init__(
        self,
        cluster: Cluster,
        mechanism: str,
        reader: NameReader,
        *,
        timeout_ms: int = TIMEOUT_MS,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """``reader`` is that of the mechanism; ``now_s`` is the time since 1970."""
        self._cluster = cluster
        self._mechanism = mechanism
        self._reader = reader
        self._timeout_ms = timeout_ms
        self._now_s = now_s

    async def verify(self, user: str, secret: str) -> Identity:
        """Who that is, by the cluster; without a user the secret is a token.

        Raises ``NotAuthenticated``, ``CannotVerify``.
        """
        client, first = self._begin(user, secret)
        # Who is let in is whom the cluster has read in the message, and said yes to.
        identity = self._reader.read(first)
        if user and identity.principal != f"User:{user}":
            raise NotAuthenticated("the user name cannot be sent to the cluster")
        login = PassedLogin(self._cluster, self._timeout_ms)
        try:
            await self._shake_hands(login)
            lifetime_ms = await self._converse(login, client, first)
        finally:
            login.close()
        return self._limit(identity, lifetime_ms)

    def _begin(self, user: str, secret: str) -> tuple[ClientLogin, bytes]:
        try:
            client = make_login(self._mechanism, user, secret, lambda: secret)
            return client, client.first()
        except (scramp.ScramException, ValueError):
            raise NotAuthenticated("the user or the password cannot be sent") from None

    async def _shake_hands(self, login: PassedLogin) -> None:
        asked: asyncio.Future[HandshakeAnswer | None] = _make_future()
        login.shake_hands(self._mechanism, lambda answer: _set(asked, answer))
        answer = await asked
        if answer is None:
            raise CannotVerify
        if answer.code is not ErrorCode.NONE:
            offered = ", ".join(answer.mechanisms)[:200]
            logger.warning(
                "upstream_mechanism_refused mechanism=%s offered=%s", self._mechanism, offered
            )
            raise CannotVerify

    async def _converse(self, login: PassedLogin, client: ClientLogin, first: bytes) -> int:
        """The lifetime of the session in ms, 0 for no end."""
        token: bytes | None = first
        for number in range(1, _MESSAGES_MAX):
            assert token is not None
            answer = await self._ask(login, token)
            is_last = self._reader.is_last(number, answer.token)
            # Some milliseconds of work for SCRAM.
            token = await asyncio.to_thread(client.answer, answer.token)
            if token is None and is_last:
                return answer.session_lifetime_ms
            if token is None or is_last:
                break
        raise NotAuthenticated("the cluster's answer is not understood")

    async def _ask(self, login: PassedLogin, token: bytes) -> TokenAnswer:
        asked: asyncio.Future[TokenAnswer | None] = _make_future()
        login.authenticate(token, lambda answer: _set(asked, answer))
        answer = await asked
        if answer is None:
            raise CannotVerify
        if answer.code is not ErrorCode.NONE:
            raise NotAuthenticated("refused by the cluster")
        return answer

    def _limit(self, identity: Identity, lifetime_ms: int) -> Identity:
        if not lifetime_ms:
            return identity
        ends = int(self._now_s() * 1_000) + lifetime_ms
        if identity.expires_at_ms is not None:
            ends = min(ends, identity.expires_at_ms)
        return replace(identity, expires_at_ms=ends)


def _make_future() -> asyncio.Future[T]:
    return asyncio.get_running_loop().create_future()


def _set(asked: asyncio.Future[T], answer: T) -> None:
    if not asked.done():
        asked.set_result(answer)
