"""Repeated requests under access control: served as long as no ACL has changed."""

from __future__ import annotations

from coordinator.runtime.authorizer import Authorizer
from gateway.api import ClientConnection, Repeats
from gateway.pending import Pending


class GuardedRepeats:
    """Serves what ``repeats`` serves, until the authorizer decides by other ACLs.

    The rights were checked for the request that made ``repeats``. After a change the next request
    is decoded and checked again.
    """

    __slots__ = ("_authorizer", "_repeats", "_version")

    def __init__(self, repeats: Repeats, authorizer: Authorizer) -> None:
        self._repeats = repeats
        self._authorizer = authorizer
        self._version = authorizer.version

    def serve(self, client: ClientConnection, frame: bytes, now: float) -> bytes | Pending | None:
        """Serve a frame (``gateway.api.Repeats``)."""
        if self._authorizer.version != self._version:
            return None
        return self._repeats.serve(client, frame, now)
