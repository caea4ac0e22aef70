"""When the heartbeats of a classic member come: what is known of its client's interval."""

from __future__ import annotations

from typing import Final

from model.commands import ClassicHeartbeat, SyncGroup

_SKIPPED: Final = 1.5
"""After a gap of so many intervals nothing is known: the client left a heartbeat out because one
was under way, or the interval that was learned is too short."""
_GROWTH: Final = 64
"""By this part of it the interval grows with each gap that is longer."""


class ClassicMemberPace:
    """When the heartbeats of the one classic member of a connection come.

    ``interval_ms`` is 0 while it is not known: the next heartbeat is then answered at once, and
    the gap to the one after it is the client's interval. Gaps are measured within one generation.
    Where nothing is known yet its first heartbeat tells something: many clients begin to count
    when they are told their assignment, and none counts longer from there.
    """

    __slots__ = (
        "_generation",
        "_has_synced",
        "_heard_at",
        "_key",
        "_sync_parked_at",
        "interval_ms",
        "is_parked",
    )

    def __init__(self) -> None:
        self._key: tuple[str, str] | None = None
        self._generation = -1
        self._heard_at = 0.0
        self._has_synced = False
        self._sync_parked_at = -1_000_000.0
        self.interval_ms = 0.0
        self.is_parked = False
        """Whether the last heartbeat was held back; whoever does that says so here."""

    def begin(self, command: SyncGroup, now: float) -> None:
        """Note that the member is told its assignment, at ``now`` in seconds."""
        self._note(command, now)
        self._has_synced = True

    def may_park_sync(self, now: float, park_ms: int) -> bool:
        """Whether the last SyncGroup was parked long enough ago for another to be, at ``now``."""
        if (now - self._sync_parked_at) * 1_000 < 2 * park_ms:
            return False
        self._sync_parked_at = now
        return True

    def hear(self, command: ClassicHeartbeat, now: float) -> None:
        """Note that a heartbeat came, at ``now`` in seconds."""
        heard_at, was_parked, is_first = self._heard_at, self.is_parked, self._has_synced
        if self._note(command, now) and not (is_first and self.interval_ms):
            self._learn((now - heard_at) * 1_000, was_parked)

    def _note(self, command: SyncGroup | ClassicHeartbeat, now: float) -> bool:
        """Whether the same member, of the same generation, was the last one to speak.

        Where it was another member nothing is known: of several on a connection none is parked.
        """
        key, generation = (command.group_id, command.member_id), command.generation
        is_same = key == self._key
        if not is_same:
            self._key, self.interval_ms = key, 0.0
        is_same = is_same and generation == self._generation
        self._generation, self._heard_at = generation, now
        self.is_parked = self._has_synced = False
        return is_same

    def _learn(self, gap_ms: float, was_parked: bool) -> None:
        known = self.interval_ms
        if not was_parked:
            self.interval_ms = gap_ms
        elif gap_ms >= known * _SKIPPED:
            self.interval_ms = 0.0
        else:
            self.interval_ms = min(gap_ms, known + known / _GROWTH)
