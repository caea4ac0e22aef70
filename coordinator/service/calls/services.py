"""The context shared by all gRPC servicers."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.runtime.api import Coordinator
from coordinator.runtime.as_of.history_reads import HistoryReads
from coordinator.runtime.loop.stats import Histograms
from coordinator.runtime.members.member_rights import MemberRights
from coordinator.service.calls.access import Access
from coordinator.service.calls.throttle import Throttle
from coordinator.service.ends.end_offset_times import EndOffsetTimes
from coordinator.service.ends.known_ends import KnownEnds
from coordinator.service.settings import GrpcSettings
from coordinator.service.streams.backlog import Backlog
from coordinator.service.streams.pinger import Pinger
from coordinator.service.streams.session_turns import Turns
from coordinator.service.streams.sessions import SessionRegistry
from coordinator.service.watch.watched_groups import WatchedGroups
from coordinator.service.wire.limits import Limits


@dataclass(frozen=True, slots=True)
class Services:
    """The coordinator, and the settings and shared state of the gRPC listener.

    ``ping_interval_ms``: silence after which a session is sent a Ping. ``history`` is ``None``
    if the log is not on disk, ``rights`` without access control, ``known_ends`` if nobody asks.
    """

    # More than 15 attributes: all that services share.

    coordinator: Coordinator
    access: Access
    limits: Limits
    settings: GrpcSettings
    sessions: SessionRegistry
    pinger: Pinger
    ping_interval_ms: int
    turns: Turns
    backlog: Backlog
    throttle: Throttle
    watched: WatchedGroups
    history: HistoryReads | None = None
    rights: MemberRights | None = None
    known_ends: KnownEnds | None = None
    end_offset_times: EndOffsetTimes = field(default_factory=EndOffsetTimes)
    times: Histograms = field(default_factory=Histograms)
    """How long calls take, and actions on sessions, by name."""

    @property
    def touch_interval_s(self) -> float:
        """The minimum interval (s) between two renewals of a session's members by its messages."""
        settings = self.coordinator.settings
        session_ms = min(
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_min_session_timeout_ms,
        )
        return min(1.0, self.ping_interval_ms / 4_000, session_ms / 10_000)
