"""When rebalances begin: times that keep the entries of a group in their order."""

from __future__ import annotations

from typing import Final

from model.ids import GroupId

KEPT_MAX: Final = 10_000
"""Groups that are remembered while the clock stands still, which it may do for hours."""


class BeginTimes:
    """Wall times of entries, by which and by whose epochs a group's entries are sorted.

    A group that is deleted and made again has the same epochs again. While the clock stands still,
    as after it was set back, the second group's entries would be among those of the first, or in
    their place; so they are of a millisecond later.
    """

    __slots__ = ("_latest", "_now_ms")

    def __init__(self) -> None:
        self._now_ms = -1
        self._latest: dict[GroupId, int] = {}
        """Of the groups that began one now, or later than now."""

    def compute(self, group_id: GroupId, now_ms: int, *, is_first: bool) -> int:
        """The time of an entry; ``is_first``: its epoch is the first of a group."""
        if now_ms != self._now_ms:
            self._now_ms = now_ms
            self._latest = {key: at_ms for key, at_ms in self._latest.items() if at_ms >= now_ms}
        latest = self._latest.get(group_id)
        at_ms = now_ms if latest is None else max(latest + is_first, now_ms)
        self._latest[group_id] = at_ms
        if len(self._latest) > KEPT_MAX:
            del self._latest[next(iter(self._latest))]
        return at_ms
