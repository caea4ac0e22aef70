"""What the session stream shows of its client, and when its members go on on another stream."""

from __future__ import annotations

import grpc
import grpc.aio

from muster.connection.authorization import Authorization, Metadata
from muster.connection.authorized_channel import CREDENTIALS_EXPIRED, find_reason


class StreamCredentials:
    """Without an ``authorization`` nothing is shown, and a server that asks for more is final.

    ``is_moving``: the stream ends under its members, and a new one is to come.
    ``is_refused``: nothing that the client has will be accepted.
    """

    __slots__ = ("_authorization", "_goes_on_at_once", "_shown", "is_moving", "is_refused")

    def __init__(self, authorization: Authorization | None) -> None:
        self._authorization = authorization
        self._shown: Metadata = ()
        self._goes_on_at_once = False
        self.is_moving = False
        self.is_refused = False

    async def prepare(self) -> None:
        """Have what the next stream shows. Raises ``TokenUnavailable``."""
        if self._authorization is not None:
            self._shown = await self._authorization.find()

    def note_served(self) -> None:
        """The server has sent something on the stream."""
        if self._authorization is not None:
            self._authorization.note_accepted()

    def move(self) -> None:
        """The next stream follows at once."""
        self.is_moving = self._goes_on_at_once = True

    def take_at_once(self) -> bool:
        """Whether the next stream is to follow at once; asked once for each."""
        found, self._goes_on_at_once = self._goes_on_at_once, False
        return found

    def handle_error(self, error: grpc.aio.AioRpcError) -> bool:
        """Whether the stream's error is final: another token would not help, or is not there."""
        if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
            return False
        ended = find_reason(error) == CREDENTIALS_EXPIRED
        may_retry = self._authorization is not None and self._authorization.note_refused(
            self._shown, was_valid=ended
        )
        if may_retry and ended:
            self.move()
        self.is_refused = not may_retry
        return self.is_refused

    def stop(self) -> None:
        """Replace no token any more."""
        if self._authorization is not None:
            self._authorization.stop()
