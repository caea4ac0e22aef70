"""What every gRPC servicer works with."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.runtime.api import Coordinator
from coordinator.runtime.as_of.history_reads import HistoryReads
from coordinator.service.calls.access import Access
from coordinator.service.settings import GrpcSettings
from coordinator.service.streams.backlog import Backlog
from coordinator.service.streams.pinger import Pinger
from coordinator.service.streams.session_turns import Turns
from coordinator.service.streams.sessions import SessionRegistry
from coordinator.service.wire.limits import Limits


@dataclass(frozen=True, slots=True)
class Door:
    """The coordinator behind the door, and the door's own rules.

    ``ping_interval_ms``: silence after which a session is sent a Ping. ``history`` is ``None``
    where the log is not on a disk.
    """

    coordinator: Coordinator
    access: Access
    limits: Limits
    settings: GrpcSettings
    sessions: SessionRegistry
    pinger: Pinger
    ping_interval_ms: int
    turns: Turns
    backlog: Backlog
    history: HistoryReads | None = None

    @property
    def touch_interval_s(self) -> float:
        """How often at most a session renews its members, however many messages come."""
        settings = self.coordinator.settings
        session_ms = min(
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_min_session_timeout_ms,
        )
        return min(1.0, self.ping_interval_ms / 4_000, session_ms / 10_000)
