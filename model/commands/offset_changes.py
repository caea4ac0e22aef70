"""The command that asks for changes of a group's offsets."""

from __future__ import annotations

from model.caller import Caller
from model.ids import GroupId
from model.value import value


@value
class ListOffsetChanges:
    """Tell the changes of a group's offsets that are no commits, the last one first.

    ``before`` is the first log offset of the change before which to begin, ``None`` for the last
    one. ``limit`` is how many.
    """

    caller: Caller
    group_id: GroupId
    before: int | None
    limit: int
