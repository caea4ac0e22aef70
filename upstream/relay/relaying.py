"""What all connections of all relays share."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.rewriting.frames import Rewriting
from upstream.cluster.cluster import Cluster
from upstream.relay.frames.splitting import BadFrame
from upstream.relay.groups.seen_members import SeenMembers
from upstream.relay.groups.waits import Waits
from upstream.relay.relay_places import RelayPlaces
from upstream.relay.relay_settings import RelaySettings
from upstream.statistics import UpstreamStatistics


@dataclass(slots=True)
class Relaying:
    """``rewriting`` names the relays as they are at each moment."""

    cluster: Cluster
    places: RelayPlaces
    settings: RelaySettings
    rewriting: Rewriting
    statistics: UpstreamStatistics
    members: SeenMembers = field(default_factory=SeenMembers)
    waits: Waits = field(default_factory=Waits)
    held_bytes: int = 0
    """Bytes of frames that are being looked at, now."""

    def hold_request(self, more: int, size: int) -> None:
        """More bytes of a request are held; raises ``BadFrame`` if that is too much."""
        self._hold(more, size, self.settings.held_request_bytes_max)

    def hold_response(self, more: int, size: int) -> None:
        """More bytes of a response are held; raises ``BadFrame`` if that is too much."""
        self._hold(more, size, self.settings.held_response_bytes_max)

    def _hold(self, more: int, size: int, size_max: int) -> None:
        if size > size_max:
            raise BadFrame(f"a frame of {size} bytes is too large to be looked at")
        settings = self.settings
        is_small = size <= settings.held_always_bytes
        if not is_small and self.held_bytes + more > settings.held_bytes_total_max:
            raise BadFrame("too much is being looked at")
        self.held_bytes += more

    def release(self, size: int) -> None:
        """They are not held any more."""
        self.held_bytes -= size
