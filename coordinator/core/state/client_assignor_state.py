"""Client-side assignors of a group: what its members have, what is installed, what is asked."""

from __future__ import annotations

from model.ids import GroupId, MemberId
from model.local_assignors import InstalledMetadataValue, LocalAssignor
from model.value import value


class LocalState:
    """Of a consumer group in which a member names an assignor, changed by ``replay`` alone.

    It is in side records, and gone with the member that it is of.
    """

    __slots__ = ("assignors", "installed")

    def __init__(self) -> None:
        self.assignors: dict[MemberId, tuple[LocalAssignor, ...]] = {}
        self.installed: dict[MemberId, InstalledMetadataValue] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known."""
        return not (self.assignors or self.installed)

    def forget(self, member_id: MemberId) -> None:
        """The member is gone."""
        self.assignors.pop(member_id, None)
        self.installed.pop(member_id, None)


@value
class LocalRequest:
    """A group waits for an assignment that a member is to compute: soft state.

    ``member_id`` is who was asked last, ``None`` while nobody can be. At ``deadline_ms``
    (monotonic) the server computes it itself, and the request ``is_given_up``.
    """

    group_id: GroupId
    group_epoch: int
    assignor: str
    version: int
    deadline_ms: int
    member_id: MemberId | None = None
    is_given_up: bool = False
