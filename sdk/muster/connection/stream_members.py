"""How a client calls its members."""

from __future__ import annotations

from typing import Protocol

from muster.connection.stream import Stream
from muster.errors import MusterError
from muster.v1 import group_pb2


class StreamMember(Protocol):
    """A member on the session stream."""

    group_id: str

    @property
    def member_id(self) -> str:
        """The present member id; see ``Client.rename``."""

    @property
    def is_leaving(self) -> bool:
        """Whether it is giving up, and still needs a stream to leave."""

    def on_stream(self, stream: Stream) -> None:
        """A stream is open: join, or resume, on it."""

    def on_stream_lost(self, stream: Stream) -> None:
        """The stream broke."""

    def on_update(self, update: group_pb2.MemberUpdate, stream: Stream) -> None:
        """The server has sent the member an update."""

    def check_lease(self, now: float) -> float | None:
        """Lose the partitions if the lease has ended; return when to check again, if ever."""

    def leave_at_once(self, failure: MusterError) -> None:
        """The member has failed: leave, and raise the failure in the application."""


class ClosedMember(Protocol):
    """A member that uses no stream, but must know when the client is closed."""

    group_id: str

    def leave_at_once(self, failure: MusterError) -> None:
        """See ``StreamMember``."""
