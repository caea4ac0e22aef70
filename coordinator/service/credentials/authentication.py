"""Tells who a call comes from, on a listener that asks for it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias, assert_never

import grpc.aio

from coordinator.runtime.audit import Audit
from coordinator.service.credentials.fair_line import LineTooLong, WaitingCounts
from coordinator.service.credentials.peer_host import (
    LISTENER,
    compute_client_host,
    compute_client_network,
)
from coordinator.service.credentials.presented import (
    BearerToken,
    MalformedCredentials,
    UserPassword,
    find_presented,
)
from coordinator.service.credentials.refusals import (
    CANNOT_VERIFY,
    NO_CREDENTIALS,
    TOO_MANY_CHECKS,
    WRONG_CREDENTIALS,
    refuse,
)
from coordinator.service.credentials.remembered import Remembered
from coordinator.service.credentials.shared_checks import SharedChecks
from coordinator.service.credentials.verifiers import CannotVerify, TokenVerifier
from security.identity import NOBODY, Identity
from security.sasl.conversation import NotAuthenticated, UnknownKey
from security.tls.principals import PrincipalFault

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Authenticate: TypeAlias = Callable[[Context], Awaitable[Identity]]
"""Returns who the call comes from, or ends the call."""

CERTIFICATES_MAX: Final = 10_000
TOKEN_REMEMBERED_S: Final = 60.0
_CERTIFICATE_KEY: Final = "x509_pem_cert"


class CertificateAuthentication:
    """The principal of the client's certificate; a client without one is ``User:ANONYMOUS``.

    The TLS handshake has checked the certificate. ``compute_identity`` takes its PEM, and raises
    ``PrincipalFault`` for one that names nobody.
    """

    __slots__ = ("_audit", "_compute_identity", "_known")

    def __init__(self, compute_identity: Callable[[bytes], Identity], audit: Audit) -> None:
        self._compute_identity = compute_identity
        self._audit = audit
        self._known: OrderedDict[bytes, Identity] = OrderedDict()

    async def authenticate(self, context: Context) -> Identity:
        """Who the call comes from."""
        certificates = tuple(context.auth_context().get(_CERTIFICATE_KEY, ()))
        if not certificates:
            return NOBODY
        pem = certificates[0]
        identity = self._known.get(pem)
        if identity is None:
            try:
                identity = self._known[pem] = self._compute_identity(pem)
            except PrincipalFault as fault:
                host = compute_client_host(context.peer())
                self._audit.not_authenticated(host, LISTENER, "SSL", str(fault))
                await refuse(context, WRONG_CREDENTIALS)
            if len(self._known) > CERTIFICATES_MAX:
                self._known.popitem(last=False)
        return identity


class MetadataAuthentication:
    """Who the credentials in the metadata of the call belong to.

    What fails is answered alike, after ``delay_s``, and told to ``audit``.
    """

    __slots__ = (
        "_audit",
        "_delay_s",
        "_delayed",
        "_password_session_ms",
        "_passwords",
        "_refresh_keys",
        "_remembered",
        "_token_logins",
        "_token_session_ms",
        "_tokens",
        "_wall_clock_s",
    )

    def __init__(
        self,
        *,
        tokens: TokenVerifier | None,
        passwords: SharedChecks | None,
        token_logins: SharedChecks | None = None,
        delay_s: float,
        password_session_ms: int = 0,
        token_session_ms: int = 0,
        audit: Audit,
        key: bytes,
        wall_clock_s: Callable[[], float],
        refresh_keys: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        """``key``: random bytes, of this process alone.

        ``token_logins`` check tokens in place of ``tokens``; there they have no user.

        ``password_session_ms``, ``token_session_ms``: after how long a session has to authenticate
        again; 0 for never, apart from the end of its token.

        ``refresh_keys`` looks for newer keys of tokens, and calls its argument on the loop.
        """
        self._refresh_keys = refresh_keys
        self._tokens = tokens
        self._token_logins = token_logins
        self._passwords = passwords
        self._password_session_ms = password_session_ms
        self._token_session_ms = token_session_ms
        self._remembered = Remembered(key, TOKEN_REMEMBERED_S)
        self._delayed = WaitingCounts()
        self._delay_s = delay_s
        self._audit = audit
        self._wall_clock_s = wall_clock_s

    async def authenticate(self, context: Context) -> Identity:
        """Who the call comes from; ends the call if that is nobody."""
        connection = context.peer()
        host = compute_client_host(connection)
        try:
            presented = find_presented(context.invocation_metadata())
        except MalformedCredentials:
            self._audit.not_authenticated(host, LISTENER, "", "malformed credentials")
            await self._refuse_late(context, connection)
        if presented is None:
            self._audit.not_authenticated(host, LISTENER, "", "no credentials")
            await refuse(context, NO_CREDENTIALS)
        try:
            match presented:
                case BearerToken():
                    identity = await self._check_token(presented, context, host, connection)
                    return self._limit(identity, self._token_session_ms)
                case UserPassword():
                    identity = await self._check_password(presented, context, host, connection)
                    return self._limit(identity, self._password_session_ms)
                case _:
                    assert_never(presented)
        except LineTooLong:
            await refuse(context, TOO_MANY_CHECKS)
        except CannotVerify:
            await refuse(context, CANNOT_VERIFY)

    def _limit(self, identity: Identity, session_ms: int) -> Identity:
        if not session_ms:
            return identity
        ends = int(self._wall_clock_s() * 1_000) + session_ms
        if identity.expires_at_ms is not None:
            ends = min(ends, identity.expires_at_ms)
        return replace(identity, expires_at_ms=ends)

    async def _check_token(
        self, presented: BearerToken, context: Context, host: str, connection: str
    ) -> Identity:
        token, now_s = presented.token.reveal(), self._wall_clock_s()
        identity = self._remembered.find((token,), None, now_s)
        if identity is not None:
            return identity
        try:
            identity = await self._find_owner(presented, connection, now_s)
            if identity.expires_at_ms is not None and identity.expires_at_ms <= now_s * 1_000:
                # A tolerance for clocks would let a session open that has to end at once.
                raise NotAuthenticated("the token has expired")
        except NotAuthenticated as error:
            self._audit.not_authenticated(host, LISTENER, "OAUTHBEARER", error.reason)
            await self._refuse_late(context, connection)
        self._remembered.note((token,), None, identity, now_s)
        return identity

    async def _find_owner(self, presented: BearerToken, connection: str, now_s: float) -> Identity:
        """Whom a token is about. Raises ``NotAuthenticated``, ``LineTooLong``, ``CannotVerify``."""
        if self._token_logins is not None:
            network = compute_client_network(connection)
            asked = UserPassword("", presented.token)
            return await self._token_logins.check(asked, network, connection, now_s)
        if self._tokens is None:
            raise NotAuthenticated("tokens are not accepted here")
        return await self._verify(self._tokens, presented.token.reveal(), now_s)

    async def _verify(self, tokens: TokenVerifier, token: str, now_s: float) -> Identity:
        try:
            return tokens.verify(token, now_s)
        except UnknownKey:
            if self._refresh_keys is None:
                raise
        refreshed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refresh_keys(partial(_set_done, refreshed))
        await refreshed
        return tokens.verify(token, now_s)

    async def _check_password(
        self, presented: UserPassword, context: Context, host: str, connection: str
    ) -> Identity:
        now_s = self._wall_clock_s()
        try:
            if self._passwords is None:
                raise NotAuthenticated("passwords are not accepted here")
            known = self._passwords.find(presented, now_s)
            if known is not None:
                return known
            network = compute_client_network(connection)
            return await self._passwords.check(presented, network, connection, now_s)
        except NotAuthenticated as error:
            self._audit.not_authenticated(host, LISTENER, "Basic", error.reason)
            await self._refuse_late(context, connection)

    async def _refuse_late(self, context: Context, connection: str) -> NoReturn:
        """Refuse after the delay; at once, and with nothing checked, who does not wait for it."""
        try:
            with self._delayed.counted(compute_client_network(connection), connection):
                await asyncio.sleep(self._delay_s)
        except LineTooLong:
            await refuse(context, TOO_MANY_CHECKS)
        await refuse(context, WRONG_CREDENTIALS)


def _set_done(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
