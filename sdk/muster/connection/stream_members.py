"""What a client calls of the members on its stream."""

from __future__ import annotations

from typing import Protocol

from muster.connection.stream import Stream
from muster.errors import MusterError
from muster.v1 import group_pb2


class StreamMember(Protocol):
    """A member, as its connection sees it."""

    group_id: str
    member_id: str

    @property
    def is_leaving(self) -> bool:
        """Whether it is giving up, and has to say so."""

    def on_stream(self, stream: Stream) -> None:
        """A stream is open: join, or resume, on it."""

    def on_stream_lost(self, stream: Stream) -> None:
        """The stream is gone."""

    def on_update(self, update: group_pb2.MemberUpdate, stream: Stream) -> None:
        """The server tells the member something."""

    def check_lease(self, now: float) -> float | None:
        """Loses the partitions if the lease has ended; when to look again, if ever."""

    def leave_at_once(self, failure: MusterError) -> None:
        """The member has failed: it leaves, and its application is told why."""


class ClosedMember(Protocol):
    """A member that only wants to know when its connection is closed."""

    group_id: str

    def leave_at_once(self, failure: MusterError) -> None:
        """See ``StreamMember``."""
