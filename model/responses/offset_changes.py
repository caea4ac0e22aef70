"""The response that tells changes of a group's offsets."""

from __future__ import annotations

from model.past.offset_changes import OffsetChange
from model.value import value


@value
class ListOffsetChangesResponse:
    """The changes, the last one first; ``has_more`` if older ones were asked for, too.

    ``since_ms`` is since when the log partition has its history (wall), -1 if it has all.
    """

    changes: tuple[OffsetChange, ...]
    has_more: bool = False
    since_ms: int = -1
