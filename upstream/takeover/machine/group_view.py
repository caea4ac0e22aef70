"""A group as the cluster describes it, and what follows from that for a takeover."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from model.errors import ErrorCode
from muster.assignors.embedded import PROTOCOL_TYPE
from upstream.sentinel.sentinel_sign import INSTANCE_ID, SentinelSign, decode_sign

STABLE: Final = "Stable"
STOCK_PROTOCOLS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The protocols of the assignors that come with Kafka's clients."""


@dataclass(frozen=True, slots=True)
class ViewedMember:
    """A member as DescribeGroups shows it; its metadata is empty unless the group is Stable."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    metadata: bytes = b""
    assignment: bytes = b""

    @property
    def is_sentinel(self) -> bool:
        """Whether it is the sentinel of a Muster."""
        return self.instance_id == INSTANCE_ID


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as DescribeGroups shows it.

    ``has_consumer_members``: the cluster serves the consumer protocol, and the group has members of
    it; DescribeGroups then does not show them.
    """

    error: ErrorCode
    state: str
    protocol_type: str
    protocol: str
    members: tuple[ViewedMember, ...] = ()
    has_consumer_members: bool = False

    @property
    def sentinel(self) -> ViewedMember | None:
        """The sentinel in the group."""
        return next((member for member in self.members if member.is_sentinel), None)

    @property
    def sign(self) -> SentinelSign | None:
        """The sign of the sentinel; ``None`` until its SyncGroup was handled."""
        sentinel = self.sentinel
        return None if sentinel is None else decode_sign(sentinel.assignment)

    @property
    def others(self) -> tuple[ViewedMember, ...]:
        """The members but for the sentinel."""
        return tuple(member for member in self.members if not member.is_sentinel)

    @property
    def settled(self) -> frozenset[str]:
        """The members of a group that is Stable; none of any other."""
        is_whole = self.state == STABLE and all(member.metadata for member in self.members)
        return frozenset(each.member_id for each in self.members) if is_whole else frozenset()

    @property
    def is_of_consumers(self) -> bool:
        """Whether its members are consumers, or it has no type yet."""
        return self.protocol_type in ("", PROTOCOL_TYPE)


@dataclass(frozen=True, slots=True)
class Stranger:
    """A member that reaches the cluster without this Muster."""

    member_id: str
    client_id: str
    host: str


def compute_strangers(
    members: Iterable[ViewedMember], known: Collection[str]
) -> tuple[Stranger, ...]:
    """The members that nothing was heard of here, nor through a relay."""
    return tuple(
        Stranger(member.member_id, member.client_id, member.host)
        for member in members
        if member.member_id not in known
    )


def complete_view(view: GroupView, before: GroupView | None) -> GroupView:
    """The view with the metadata that members had while the group was Stable."""
    if before is None or all(member.metadata for member in view.members):
        return view
    known = {member.member_id: member for member in before.members}
    members = (
        known.get(member.member_id, member) if not member.metadata else member
        for member in view.others
    )
    own = () if view.sentinel is None else (view.sentinel,)
    return replace(view, members=(*members, *own))
