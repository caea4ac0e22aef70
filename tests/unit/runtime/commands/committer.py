"""A client that commits with a ticket."""

from __future__ import annotations

from model.errors import ErrorCode
from model.log.commit_records import OffsetColumns
from tests.support.virtual.server import VirtualServer


class Committer:
    """Commits offsets of the topic ``foo``; ``released`` counts the responses."""

    def __init__(
        self, server: VirtualServer, group: str, member: str = "", epoch: int | None = None
    ) -> None:
        command = server.commit_command(group, member, epoch, "foo", {0: 1})
        self.server = server
        self.released = 0
        ticket = server.runtime.commit_ticket(command)
        assert ticket is not None
        self.ticket = ticket

    def commit(self, partition: int, offset: int) -> bool:
        now_ms = self.server.scheduler.now_ms
        offsets = OffsetColumns((partition,), (offset,), (-1,))
        return self.ticket.commit(offsets, now_ms, self._release)

    def _release(self, error: ErrorCode = ErrorCode.NONE) -> None:
        assert not error
        self.released += 1
