"""A client's own connection to a broker: on it the client logs in, and its requests are passed on.

A broker that does not answer a message of a login in time, or whose answer is not understood, ends
the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from gateway.sasl.logins import OnHandshake, OnToken
from upstream.cluster.cluster import Cluster, ClusterUnreachable, RawLink
from upstream.logins.sasl_frames import (
    Malformed,
    decode_handshake,
    decode_token,
    encode_handshake,
    encode_token,
)

T = TypeVar("T")

ANSWER_BYTES_MAX: Final = 64 * 1024
"""Of an answer to a message of a login."""
TIMEOUT_MS: Final = 10_000
"""For a message of a login, with the connection that it needs."""


class PassedLogin:
    """The connection of one login (``gateway.sasl.logins.Login``).

    Whoever gets it once the client is known sends and reads as on any connection. Before, what
    comes is answers to the login. It is one at a time in turn: nothing is locked.
    """

    def __init__(self, cluster: Cluster, timeout_ms: int = TIMEOUT_MS) -> None:
        self._cluster = cluster
        self._timeout_s = timeout_ms / 1_000
        self._link: RawLink | None = None
        self._correlation_id = 0
        self._asking: asyncio.Task[None] | None = None
        self._ahead: asyncio.Task[bytes | None] | None = None
        self._is_closed = False
        self.is_taken = False
        """Whether a request was sent on it: then who sent it closes it."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._is_closed

    # ------------------------------------------------------------------------------ the login

    def shake_hands(self, mechanism: str, reply: OnHandshake) -> None:
        """See ``Login``."""
        number = self._correlation_id = self._correlation_id + 1
        frame = encode_handshake(number, mechanism)
        self._begin(frame, partial(decode_handshake, correlation_id=number), reply)

    def authenticate(self, token: bytes, reply: OnToken) -> None:
        """See ``Login``."""
        number = self._correlation_id = self._correlation_id + 1
        frame = encode_token(number, token)
        self._begin(frame, partial(decode_token, correlation_id=number), reply)

    def _begin(
        self, frame: bytes, decode: Callable[[bytes], T], reply: Callable[[T | None], None]
    ) -> None:
        # Kept: the loop alone would not hold it.
        self._asking = asyncio.get_running_loop().create_task(self._ask(frame, decode, reply))

    async def _ask(
        self, frame: bytes, decode: Callable[[bytes], T], reply: Callable[[T | None], None]
    ) -> None:
        answer = None
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await self._exchange(frame)
            if found is not None and len(found) <= ANSWER_BYTES_MAX:
                answer = decode(found)
        except (ClusterUnreachable, TimeoutError, Malformed, OSError):
            pass
        if self._is_closed:
            return
        if answer is None:
            self.close()
        reply(answer)

    async def _exchange(self, frame: bytes) -> bytes | None:
        link = self._link
        if link is None:
            link = await self._cluster.open_raw(None)
            if self._is_closed:
                link.close()
                return None
            self._link = link
        link.send(frame)
        return await link.read_frame()

    # ------------------------------------------------------------------- when the client is known

    def settle(self) -> None:
        """See ``Login``: from now on the end of an idle connection is noticed."""
        assert self._link is not None
        self._ahead = asyncio.get_running_loop().create_task(self._link.read_frame())
        self._ahead.add_done_callback(self._on_ahead)

    def _on_ahead(self, ahead: asyncio.Task[bytes | None]) -> None:
        if ahead.cancelled() or ahead.exception() is not None or ahead.result() is None:
            self.close()

    def send(self, frame: bytes) -> None:
        """See ``gateway.fronting.front.PassedLink``."""
        self.is_taken = True
        if self._link is not None and not self._is_closed:
            self._link.send(frame)

    async def read_frame(self) -> bytes | None:
        """See ``gateway.fronting.front.PassedLink``."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            return await ahead
        if self._link is None or self._is_closed:
            return None
        return await self._link.read_frame()

    def close(self) -> None:
        """See ``Login``."""
        self._is_closed = True
        if self._ahead is not None:
            self._ahead.cancel()
            self._ahead = None
        if self._link is not None:
            self._link.close()


class PassedLogins:
    """Opens a connection for each login (``gateway.sasl.logins.Logins``)."""

    def __init__(self, cluster: Cluster, timeout_ms: int = TIMEOUT_MS) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms

    def open(self) -> PassedLogin:
        """See ``Logins``."""
        return PassedLogin(self._cluster, self._timeout_ms)
