"""Commands about the places of groups, for a Muster in front of a cluster."""

from __future__ import annotations

from typing import TypeAlias

from model.caller import Caller
from model.commands.offsets import OffsetCommit
from model.commands.transactions import TxnOffsetCommit
from model.ids import GroupId, InstanceId, MemberId
from model.places import Place
from model.value import value


@value
class NotePlace:
    """Note where a group is, without touching the group.

    ``Place.UPSTREAM`` removes the note. A ``generation`` below the one noted before leaves that.
    """

    caller: Caller
    group_id: GroupId
    place: Place
    generation: int = 0


@value
class AdoptedMember:
    """A member of the cluster's group, with the metadata of the group's protocol.

    The timeouts are 0 if they are not known: then five minutes each.
    """

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    metadata: bytes
    assignment: bytes = b""


@value
class AdoptGroup:
    """The group is here from now on: its place is ``MUSTER``.

    One batch has the classic group with these members under their ids and exactly ``generation``,
    and the place. With a ``leader`` the group is Stable, and the members go on as they are; without
    one a rebalance begins. Without members the
    group is empty, and there is none at all if ``generation`` is 0. A group that is here already,
    of whatever type, stays as it is; only its place is noted.
    """

    caller: Caller
    group_id: GroupId
    generation: int
    protocol_type: str = ""
    protocol_name: str | None = None
    leader: MemberId | None = None
    members: tuple[AdoptedMember, ...] = ()


@value
class ReturnGroup:
    """The group's members are to go to the cluster: its place is ``RETURNING``.

    A group with members begins a rebalance. ``NonEmptyGroup`` is raised for one with members of
    the consumer protocol, ``GroupIdNotFound`` for a group that is not here.
    """

    caller: Caller
    group_id: GroupId


@value
class GiveGroupUp:
    """The group is the cluster's again: tombstones of all that it has here, and no place.

    Members that wait for an answer get NOT_COORDINATOR.
    """

    caller: Caller
    group_id: GroupId


@value
class ListPlaces:
    """List the places of all groups that are not ``Place.UPSTREAM``."""

    caller: Caller


@value
class CheckCommit:
    """Check a commit as ``OffsetCommit`` does, and write nothing.

    The response is an ``OffsetCommitResponse``.
    """

    commit: OffsetCommit

    @property
    def caller(self) -> Caller:
        """Who commits."""
        return self.commit.caller

    @property
    def group_id(self) -> GroupId:
        """The group of the commit."""
        return self.commit.group_id


@value
class CheckTxnCommit:
    """Check a commit as ``TxnOffsetCommit`` does, and write nothing.

    The response is an ``OffsetCommitResponse``.
    """

    commit: TxnOffsetCommit

    @property
    def caller(self) -> Caller:
        """Who commits."""
        return self.commit.caller

    @property
    def group_id(self) -> GroupId:
        """The group of the commit."""
        return self.commit.group_id


PlaceCommand: TypeAlias = (
    NotePlace | AdoptGroup | ReturnGroup | GiveGroupUp | ListPlaces | CheckCommit | CheckTxnCommit
)
"""What only a Muster in front of a cluster asks of itself."""
