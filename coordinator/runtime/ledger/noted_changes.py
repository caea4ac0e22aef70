"""Changes of offsets on their way into the log."""

from __future__ import annotations

from typing import NamedTuple

from model.ids import GroupId, LogOffset
from model.past.offset_changes import OffsetChangeKind


class NotedChange(NamedTuple):
    """A change of a group's offsets that is no commit, before it is written.

    ``goes_on``: it is too large for one write, and the next of the group is part of it.
    """

    group_id: GroupId
    kind: OffsetChangeKind
    principal: str
    offsets: int
    undoes: LogOffset | None
    goes_on: bool


class WrittenChange(NamedTuple):
    """A change of offsets, and where its records are in the log partition."""

    noted: NotedChange
    first: LogOffset
    last: LogOffset
