"""Client-side assignors of a group: declared, installed, and requested."""

from __future__ import annotations

from model.client_assignors import ClientAssignor, InstalledMetadataValue
from model.ids import GroupId, MemberId
from model.value import value


class ClientAssignorState:
    """The client-side assignors and installed metadata of the members of one consumer group.

    Only ``replay`` modifies it, from side records. An entry is removed with its member.
    """

    __slots__ = ("assignors", "installed")

    def __init__(self) -> None:
        self.assignors: dict[MemberId, tuple[ClientAssignor, ...]] = {}
        self.installed: dict[MemberId, InstalledMetadataValue] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no member has an entry."""
        return not (self.assignors or self.installed)

    def forget(self, member_id: MemberId) -> None:
        """Remove the entries of a member."""
        self.assignors.pop(member_id, None)
        self.installed.pop(member_id, None)


@value
class ClientAssignmentRequest:
    """Soft state of a group that waits for a member to compute its assignment.

    ``member_id`` is the member asked last, ``None`` while no member can be asked. At
    ``deadline_ms`` (monotonic) the server computes the assignment itself, and the request
    ``is_given_up``.
    """

    group_id: GroupId
    group_epoch: int
    assignor: str
    version: int
    deadline_ms: int
    member_id: MemberId | None = None
    is_given_up: bool = False
