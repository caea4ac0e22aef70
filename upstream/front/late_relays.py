"""The relays, for those that are made before them: relays ask where groups are, and takeovers who
came through a relay."""

from __future__ import annotations

from collections.abc import Mapping

from upstream.relay.groups.seen_members import SeenMember
from upstream.relay.relays import Relays


class LateRelays:
    """Nobody has come through a relay before there are relays."""

    def __init__(self) -> None:
        self.relays: Relays | None = None

    def members_of(self, group_id: str) -> Mapping[str, SeenMember]:
        """The classic members of a group that came through a relay, by id."""
        return {} if self.relays is None else self.relays.members_of(group_id)

    def end_waits(self, group_id: str) -> None:
        """Answer the JoinGroup and SyncGroup requests that wait in brokers."""
        if self.relays is not None:
            self.relays.end_waits(group_id)

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """The address of a broker's relay; ``None`` if it has none."""
        return None if self.relays is None else self.relays.address_of(node_id)
