"""A member of a consumer group, as replay makes it."""

from __future__ import annotations

from array import array
from typing import TypeAlias

from model.ids import MemberId, TopicName
from model.log.records import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue, MemberState

INITIAL_EPOCH = 1
"""Epochs of a group of which no epoch record was written yet; its first member gets 2."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""Of a static member that has left and is expected back."""

NO_NUMBERS: array[int] = array("i")
"""Shared by all members that hold nothing; never changed."""

Subscription: TypeAlias = tuple[tuple[TopicName, ...], str]
"""Names and a pattern, which is empty for none."""


class Member:
    """A member, or what is known of one whose other records were compacted away."""

    __slots__ = (
        "assigned",
        "has_current",
        "member_epoch",
        "member_id",
        "metadata",
        "pending_revocation",
        "previous_member_epoch",
        "slot",
        "state",
        "target",
    )

    def __init__(self, member_id: MemberId, slot: int) -> None:
        self.member_id = member_id
        self.slot = slot
        self.metadata: ConsumerGroupMemberMetadataValue | None = None
        self.has_current = False
        self.member_epoch = JOIN_EPOCH
        self.previous_member_epoch = -1
        self.state = MemberState.STABLE
        self.assigned = NO_NUMBERS
        self.pending_revocation = NO_NUMBERS
        self.target: array[int] | None = None
        """The numbers that the target gives it; ``None`` before a target named the member."""

    @property
    def classic(self) -> ClassicMemberMetadata | None:
        """What it said as a member of the classic protocol; ``None`` for one of the consumer's."""
        return None if self.metadata is None else self.metadata.classic_member_metadata

    @property
    def is_member(self) -> bool:
        """Whether it counts: a target alone does not make a member (Kafka replays likewise)."""
        return self.metadata is not None or self.has_current

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it has nothing to do on the way to the target of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch


class SubscribedTopicsCache:
    """What ``subscribed_topic_indexes`` has found: no state, and gone with anything it is of."""

    __slots__ = ("found", "version")

    def __init__(self) -> None:
        self.version = -1
        self.found: dict[Subscription, frozenset[int]] = {}

    def begin(self, version: int) -> None:
        """Forget what was found in other topics."""
        self.version = version
        self.found = {}
