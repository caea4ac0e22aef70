"""When rebalances begin: times that keep the entries of a group in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator.runtime.clock import SteadyClock
from model.ids import GroupId

KEPT_MAX: Final = 10_000
"""Groups that are remembered while the clock stands still, which it may do for hours."""
LOOKED_UP_MS: Final = 10_000
"""So long after what the start found in the log, by the clock, the store is asked for a group's
last entry: one from before the start may be later than now, by a millisecond for each time that the
group was made again while the clock stood still.
"""


class BeginTimes:
    """Wall times of entries, by which and by whose epochs a group's entries are sorted.

    A group that is deleted and made again has the same epochs again. While the clock stands still,
    as after it was set back, the second group's entries would be among those of the first, or in
    their place; so they are of a millisecond later.

    ``find_last_ms`` finds the time of a group's last entry in the store, ``None`` if it has none.
    """

    __slots__ = ("_clock", "_find_last_ms", "_latest", "_now_ms")

    def __init__(self, clock: SteadyClock, find_last_ms: Callable[[GroupId], int | None]) -> None:
        self._clock = clock
        self._find_last_ms = find_last_ms
        self._now_ms = -1
        self._latest: dict[GroupId, int] = {}
        """Of the groups that began one now, or later than now."""

    def compute(self, group_id: GroupId, now_ms: int, *, is_first: bool) -> int:
        """The time of an entry; ``is_first``: its epoch is the first of a group."""
        if now_ms != self._now_ms:
            self._now_ms = now_ms
            self._latest = {key: at_ms for key, at_ms in self._latest.items() if at_ms >= now_ms}
        latest = self._latest.get(group_id)
        if latest is None and now_ms <= self._clock.found_ms + LOOKED_UP_MS:
            latest = self._find_last_ms(group_id)
        at_ms = now_ms if latest is None else max(latest + is_first, now_ms)
        self._latest[group_id] = at_ms
        if len(self._latest) > KEPT_MAX:
            del self._latest[next(iter(self._latest))]
        return at_ms
