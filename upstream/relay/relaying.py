"""What all connections of all relays share."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.rewriting.frames import Rewriting
from upstream.cluster.cluster import Cluster
from upstream.relay.counts import RelayCounts
from upstream.relay.frames.splitting import BadFrame
from upstream.relay.groups.seen_members import SeenMembers
from upstream.relay.groups.waits import Waits
from upstream.relay.relay_places import RelayPlaces
from upstream.relay.relay_settings import RelaySettings


@dataclass(slots=True)
class Relaying:
    """``rewriting`` names the relays as they are at each moment."""

    cluster: Cluster
    places: RelayPlaces
    settings: RelaySettings
    rewriting: Rewriting
    members: SeenMembers = field(default_factory=SeenMembers)
    waits: Waits = field(default_factory=Waits)
    counts: RelayCounts = field(default_factory=RelayCounts)

    def hold(self, size: int) -> None:
        """A frame of this size is held; raises ``BadFrame`` if that is too much."""
        settings = self.settings
        if size > settings.held_bytes_max:
            raise BadFrame(f"a frame of {size} bytes is too large to be looked at")
        if self.counts.held_bytes + size > settings.held_bytes_total_max:
            raise BadFrame("too much is being looked at")
        self.counts.held_bytes += size

    def release(self, size: int) -> None:
        """It is not held any more."""
        self.counts.held_bytes -= size
