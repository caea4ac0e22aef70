"""Counters of what stands in front of the cluster, read by the metrics. Counting costs nothing.

One ``UpstreamStatistics`` a process; its parts get it in their constructors.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from coordinator.runtime.loop.stats import Histogram

TAKEOVER_RESULTS: Final = ("taken", "put_off", "failed")
"""``put_off``: strangers, or something else that may pass, are in the way."""
RELEASE_RESULTS: Final = ("released", "refused", "failed")
LOSS_CAUSES: Final = ("evicted", "fenced", "expired", "generation")
"""The cluster answered the sentinel with UNKNOWN_MEMBER_ID, which is ``evicted``, or ``expired`` if
its session may have ended; with FENCED_INSTANCE_ID; with ILLEGAL_GENERATION."""
RELAYED_WAYS: Final = ("to_cluster", "to_client")


def _counts(names: tuple[str, ...]) -> Counter[str]:
    return Counter(dict.fromkeys(names, 0))


@dataclass(slots=True)
class UpstreamStatistics:
    """Counts since the process started; ``*_now`` are what there is at the moment."""

    takeovers: Counter[str] = field(default_factory=lambda: _counts(TAKEOVER_RESULTS))
    """Takeovers that ended, by ``TAKEOVER_RESULTS``."""
    releases: Counter[str] = field(default_factory=lambda: _counts(RELEASE_RESULTS))
    """Releases that ended, by ``RELEASE_RESULTS``."""
    sentinels_lost: Counter[str] = field(default_factory=lambda: _counts(LOSS_CAUSES))
    """How often a sentinel lost its place, by ``LOSS_CAUSES``."""
    commit_batches: int = 0
    """OffsetCommit requests sent to the cluster for groups that are here."""
    commits: int = 0
    """Commits of members in those requests."""
    commit_seconds: Histogram = field(default_factory=Histogram)
    """Time from a member's commit to the cluster's answer, waiting included."""
    commits_unanswered_now: int = 0
    """Commits of members that are not answered; those in flight are some of them."""
    commits_in_flight_now: int = 0
    relay_connections_now: Counter[int] = field(default_factory=Counter)
    """Open connections of clients, by the node id of the relay's broker."""
    relay_connections_refused: int = 0
    """Connections of clients to relays above the limit."""
    relay_connections_closed: Counter[str] = field(default_factory=Counter)
    """Connections of clients that a relay closed, by reason."""
    relay_requests_answered: int = 0
    """Requests of clients that a relay answered itself."""
    relayed_bytes: Counter[str] = field(default_factory=lambda: _counts(RELAYED_WAYS))
    """Bytes passed through the relays, by ``RELAYED_WAYS``."""
    requests_passed_on: Counter[str] = field(default_factory=Counter)
    """Requests that Muster's own node passed on to the cluster, by the name of the API."""
    acls_mirrored_s: float | None = None
    """When the cluster's ACLs were last read, ``time.monotonic()``; ``None``: never, or it has
    none."""

    def compute_acl_age_s(self) -> float | None:
        """The age of the mirrored ACLs."""
        if self.acls_mirrored_s is None:
            return None
        return time.monotonic() - self.acls_mirrored_s
