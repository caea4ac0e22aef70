"""When the heartbeats of a classic member come: what is known of its client's interval."""

from __future__ import annotations

from typing import Final

from model.commands import ClassicHeartbeat, SyncGroup

_SKIPPED: Final = 1.5
"""A gap of so many intervals is none: a heartbeat was left out, or the client stood still."""
_GROWTH: Final = 16
"""By this part of it the interval grows with each gap that is longer."""


class ClassicMemberPace:
    """When the heartbeats of the one classic member of a connection come.

    ``interval_ms`` is 0 while it is not known. Gaps are measured within one generation, and its
    first one from when the member was told its assignment: clients begin to count there.
    """

    __slots__ = ("_generation", "_heard_at", "_key", "interval_ms")

    def __init__(self) -> None:
        self._key: tuple[str, str] | None = None
        self._generation = -1
        self._heard_at = 0.0
        self.interval_ms = 0.0

    def begin(self, command: SyncGroup, now: float) -> None:
        """Note that the member is told its assignment, at ``now`` in seconds."""
        self._note(command, now)

    def hear(self, command: ClassicHeartbeat, now: float) -> None:
        """Note that a heartbeat came, at ``now`` in seconds."""
        heard_at = self._heard_at
        if self._note(command, now):
            self._learn((now - heard_at) * 1_000)

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
        return is_same

    def _learn(self, gap_ms: float) -> None:
        known = self.interval_ms
        if not known or gap_ms < known:
            self.interval_ms = gap_ms
        elif gap_ms < known * _SKIPPED:
            self.interval_ms = min(gap_ms, known + known / _GROWTH)
