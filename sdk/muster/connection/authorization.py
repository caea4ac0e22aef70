"""What a client's calls carry to show who it is, and how a token is replaced before it ends."""

from __future__ import annotations

import asyncio
import base64
import binascii
import inspect
import json
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias

from muster.connection.unary import call_in_thread, raise_failures
from muster.credentials import Basic, Bearer, Credentials, Source, Token
from muster.errors import MusterError

Metadata: TypeAlias = tuple[tuple[str, str], ...]

_LOG = logging.getLogger("muster")
_EARLY: Final = (0.8, 0.9)
"""The part of its lifetime after which a token is replaced: not by all clients at once."""
_RETRY_MIN_S: Final = 1.0
_RETRY_MAX_S: Final = 30.0
_SOURCE_TIMEOUT_S: Final = 30.0
_REFUSALS_MAX: Final = 3
"""After so many refused tokens, each newer than the last, another one is not asked for."""


class TokenUnavailable(MusterError):
    """The application's function gave no token."""


class Authorization:
    """The ``authorization`` of calls. ``on_renewed`` is called when a newer token is there.

    A function of the application is called once at a time, however many calls wait for its token.
    """

    def __init__(self, credentials: Credentials, on_renewed: Callable[[], None]) -> None:
        self._on_renewed = on_renewed
        self._source: Source | None = None
        self._header: str | None = None
        self._expires_at = float("inf")
        self._refusals = 0
        self._refused: Metadata = ()
        self._fetching: asyncio.Task[None] | None = None
        self._called: asyncio.Future[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        match credentials:
            case Basic(user, password):
                pair = base64.b64encode(f"{user}:{password}".encode()).decode()
                self._header = f"Basic {pair}"
            case Bearer(str() as token):
                self._header = f"Bearer {token}"
            case Bearer(source):
                assert not isinstance(source, str)
                self._source = source

    @property
    def present(self) -> Metadata:
        """The metadata now; empty while there is no token."""
        return () if self._header is None else (("authorization", self._header),)

    async def find(self) -> Metadata:
        """The metadata, with a token that has not ended. Raises ``TokenUnavailable``."""
        if self._source is not None and (self._header is None or time.time() >= self._expires_at):
            await self._fetch_once()
        return self.present

    def note_refused(self, refused: Metadata, *, was_valid: bool) -> bool:
        """The server takes this no more; whether another attempt may help.

        ``was_valid``: it has served, and has ended since. A password, or a token that does not end,
        may only have to be shown again.
        """
        if self._source is None:
            return was_valid
        is_present = refused == self.present
        if is_present:
            self._header = None
        # Many calls may have carried one token, and one that is replaced may be the same again.
        if not was_valid and (is_present or refused != self._refused):
            self._refused = refused
            self._refusals += 1
        return self._refusals < _REFUSALS_MAX

    def note_accepted(self) -> None:
        """The server has taken the present token."""
        self._refusals = 0

    def stop(self) -> None:
        """Replace no token any more."""
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._fetching, self._renewing):
            if task is not None:
                task.cancel()

    # ----------------------------------------------------------------------------------- tokens

    async def _fetch_once(self) -> None:
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._fetch())
            self._fetching.add_done_callback(_take_exception)
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(_SOURCE_TIMEOUT_S):
                token = await self._ask_source()
        except TimeoutError:
            raise TokenUnavailable(f"no token within {_SOURCE_TIMEOUT_S:g} s") from None
        except Exception as error:
            raise TokenUnavailable(f"no token: {type(error).__name__}: {error}") from error
        now = time.time()
        issued_at, self._expires_at = _compute_life(token, now)
        if self._expires_at <= now:
            # By this clock: whether it has ended is for the server to say.
            self._expires_at = float("inf")
        is_newer = self._header is not None
        self._header = f"Bearer {token.value}"
        if self._expires_at < float("inf"):
            early = random.uniform(*_EARLY) * (self._expires_at - issued_at)
            self._arm(max(0.0, issued_at + early - now))
        if is_newer:
            self._on_renewed()

    async def _ask_source(self) -> Token:
        source = self._source
        assert source is not None
        made: Any
        if inspect.iscoroutinefunction(source):
            made = await raise_failures(source())
        else:
            made = await self._call_once(source)
            if inspect.isawaitable(made):
                made = await raise_failures(made)
        if isinstance(made, str):
            return Token(made)
        if not isinstance(made, Token):
            raise TypeError(f"the function returned {type(made).__name__}, not a muster.Token")
        return made

    async def _call_once(self, source: Source) -> Any:
        """Call it in a thread; if the last call still hangs, wait for that one."""
        if self._called is None:
            self._called = call_in_thread(source)
            self._called.add_done_callback(_take_exception)
        called = self._called
        try:
            return await asyncio.shield(called)
        finally:
            if called.done():
                self._called = None

    def _arm(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        """Replace the token; as long as that fails, the present one is used until its end."""
        delay_s = _RETRY_MIN_S
        while True:
            try:
                await self._fetch_once()
            except TokenUnavailable as error:
                cause = type(error.__cause__ or error).__name__
                _LOG.warning("token_not_renewed cause=%s", cause)
            else:
                return
            await asyncio.sleep(delay_s * random.uniform(0.5, 1.0))
            delay_s = min(2 * delay_s, _RETRY_MAX_S)


def _take_exception(task: asyncio.Future[Any]) -> None:
    """Who waited for the token has it; without this asyncio logs one that nobody waited for."""
    if not task.cancelled():
        task.exception()


def _compute_life(token: Token, now: float) -> tuple[float, float]:
    """When the token was issued, and when it ends; a JWT says so itself."""
    if token.expires_at is not None:
        return now, token.expires_at
    claims = _read_claims(token.value)
    return min(claims.get("iat", now), now), claims.get("exp", float("inf"))


def _read_claims(token: str) -> dict[str, float]:
    """The numbers in a JWT's claims; nothing of a token that is none. The server verifies it."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    with suppress(binascii.Error, ValueError, OverflowError, RecursionError):
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        if isinstance(claims, dict):
            return {
                name: float(value)
                for name, value in claims.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            }
    return {}
