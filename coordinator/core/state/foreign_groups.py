"""Unsupported group types: share groups and streams groups, which are kept and described only.

Memory holds just what their group state is derived from; all their records are in the store.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from model.ids import GroupId, MemberId
from model.log.streams_records import StreamsMemberState

NO_EPOCH = -1
NO_STATE = 0


class ForeignMember:
    """A member, or the rest of one whose other record was compacted away."""

    __slots__ = ("has_metadata", "member_epoch", "state")

    def __init__(self) -> None:
        self.has_metadata = False
        self.member_epoch: int | None = None
        self.state = NO_STATE


class ShareGroup:
    """A share group (KIP-932)."""

    group_type: ClassVar = "share"
    __slots__ = ("group_epoch", "group_id", "members", "target_epoch")

    def __init__(self, group_id: GroupId) -> None:
        self.group_id = group_id
        self.group_epoch = 0
        self.target_epoch = 0
        self.members: dict[MemberId, ForeignMember] = {}

    def state(self) -> str:
        """Kafka's ``ShareGroupState``."""
        return "Stable" if self.members else "Empty"


class StreamsGroup:
    """A streams group (KIP-1071). ``topology_epoch`` is ``None`` without a topology."""

    group_type: ClassVar = "streams"
    __slots__ = (
        "group_epoch",
        "group_id",
        "members",
        "target_epoch",
        "topology_epoch",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: GroupId) -> None:
        self.group_id = group_id
        self.group_epoch = 0
        self.target_epoch = 0
        self.topology_epoch: int | None = None
        self.validated_topology_epoch = NO_EPOCH
        self.members: dict[MemberId, ForeignMember] = {}

    def state(self) -> str:
        """Kafka's ``StreamsGroupState``."""
        if not self.members:
            return "Empty"
        if self.topology_epoch is None or self.topology_epoch != self.validated_topology_epoch:
            return "NotReady"
        if self.group_epoch > self.target_epoch:
            return "Assigning"
        for member in self.members.values():
            is_stable = member.state == StreamsMemberState.STABLE
            if not is_stable or member.member_epoch != self.target_epoch:
                return "Reconciling"
        return "Stable"


ForeignGroup: TypeAlias = ShareGroup | StreamsGroup
