"""Changes of a group's offsets that are no commit: what can be undone."""

from __future__ import annotations

from enum import Enum
from typing import Final

from model.ids import LogOffset
from model.value import value

NO_OFFSET: Final = -1
"""In place of an offset: there is none."""


class OffsetChangeKind(Enum):
    """What changed the offsets."""

    RESET = "reset"
    """Somebody who is no member set them."""
    UNDO = "undo"
    """An earlier change was undone."""
    GROUP_DELETED = "group_deleted"
    OFFSETS_DELETED = "offsets_deleted"
    EXPIRED = "expired"


@value
class OffsetChange:
    """One change, at a wall time, by a principal; "" for the coordinator itself.

    Its records, ``offsets`` of which are offsets, are from ``first`` to ``last`` in the log
    partition of the group, in batches of their own: the batches before ``first`` have what was
    before. Other records are between them if there were too many for one write. ``undoes`` is the
    ``first`` of the change that it undid.
    """

    kind: OffsetChangeKind
    at_ms: int
    principal: str
    first: LogOffset
    last: LogOffset
    offsets: int
    undoes: LogOffset | None = None

    @property
    def only_removes(self) -> bool:
        """Whether it sets no offset."""
        return self.kind not in (OffsetChangeKind.RESET, OffsetChangeKind.UNDO)
