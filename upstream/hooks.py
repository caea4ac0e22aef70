"""What the coordinator in front of a cluster needs of the takeover, which moves the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from coordinator.runtime.api import Reply
from model.commands.command import Command
from model.errors import ErrorCode
from model.ids import GroupId, InstanceId, MemberId


@dataclass(frozen=True, slots=True)
class SentinelIdentity:
    """Muster's own member in the cluster's group; commits are made in its name."""

    member_id: MemberId
    instance_id: InstanceId
    generation: int


class OnTheWay(Protocol):
    """The commands of groups that are on their way here."""

    def submit(self, command: Command, reply: Reply) -> None:
        """Take a command of a group whose place is TAKING, or UPSTREAM with a take asked for.

        ``reply`` is called exactly once, within the member's own timeouts.
        """


class Takeovers(Protocol):
    """The takeovers and releases of groups, and the sentinels. All calls are on the event loop."""

    @property
    def on_the_way(self) -> OnTheWay:
        """Where the commands of groups on their way are answered."""

    def is_asked_for(self, group_id: GroupId) -> bool:
        """Whether a take of this group is asked for, or runs, though no place is noted yet."""

    def ask_to_take(self, group_id: GroupId, cause: str) -> None:
        """Take a group over soon; asking again changes nothing. ``cause`` is for people."""

    def note_joined(self, group_id: GroupId, member_id: MemberId) -> None:
        """A member of a group that is returning asked to join here: it was sent to the cluster."""

    def sentinel_of(self, group_id: GroupId) -> SentinelIdentity | None:
        """The sentinel of a group, ``None`` while it has none that the cluster knows."""

    async def await_sentinel(self, group_id: GroupId) -> SentinelIdentity:
        """Wait for the sentinel. Raises ``CoordinatorLoadInProgress`` when that takes too long."""

    def note_refused(self, group_id: GroupId, code: ErrorCode) -> None:
        """The cluster refused a request in the sentinel's name: its seat is lost, or it moved on.

        ``code`` is UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION.
        """

    def note_lost_answer(self, group_id: GroupId, identity: SentinelIdentity) -> None:
        """The answer to a commit in the sentinel's name was lost; the cluster may still do it.

        Done late, it would take back what was committed after it. So ``sentinel_of`` is ``None``
        from now on, until the sentinel has joined again by its instance id: that gives it another
        member id, and whatever comes with the former one is fenced.
        """

    async def leave(self, group_id: GroupId) -> bool:
        """Make the sentinel leave an empty group that is about to be deleted in the cluster.

        Returns whether it is out. The group is the cluster's then, until it is taken again.
        """
