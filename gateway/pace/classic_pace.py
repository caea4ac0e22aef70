"""Learns the heartbeat interval of a classic member from when its heartbeats arrive."""

from __future__ import annotations

from typing import Final

from model.commands.classic import ClassicHeartbeat, SyncGroup

_SKIPPED: Final = 1.5
"""A gap of this many intervals discards the learned interval: the client skipped a heartbeat
because one was in flight, or the learned interval is too short."""
_GROWTH: Final = 64
"""A longer gap raises the learned interval by at most this fraction (1/64) of it."""


class ClassicMemberPace:
    """The heartbeat interval of a connection's only classic member.

    ``interval_ms`` is 0 while unknown: the next heartbeat is then answered at once, and the gap to
    the one after it is the client's interval. Gaps are measured within one generation. While the
    interval is unknown, the gap from the SyncGroup response to the first heartbeat serves too: many
    clients start their timer there, and none waits longer than an interval from there.
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
        """Whether the last heartbeat was parked; set by the caller that parks it."""

    def begin(self, command: SyncGroup, now: float) -> None:
        """Note that the member is sent its assignment at ``now`` seconds."""
        self._note(command, now)
        self._has_synced = True

    def may_park_sync(self, now: float, park_ms: int) -> bool:
        """Whether another SyncGroup may be parked at ``now``; claims the slot if so.

        Two parked ones must start at least twice ``park_ms`` apart.
        """
        if (now - self._sync_parked_at) * 1_000 < 2 * park_ms:
            return False
        self._sync_parked_at = now
        return True

    def hear(self, command: ClassicHeartbeat, now: float) -> None:
        """Note that a heartbeat arrived at ``now`` seconds."""
        heard_at, was_parked, is_first = self._heard_at, self.is_parked, self._has_synced
        if self._note(command, now) and not (is_first and self.interval_ms):
            self._learn((now - heard_at) * 1_000, was_parked)

    def _note(self, command: SyncGroup | ClassicHeartbeat, now: float) -> bool:
        """Note the sender; whether the last request had the same member and generation.

        A request of another member discards the interval: several members of one connection are
        never parked.
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
