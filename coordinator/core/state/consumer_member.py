"""A member of a consumer group, as built by replay."""

from __future__ import annotations

from array import array
from typing import TypeAlias

from model.ids import MemberId, TopicName
from model.log.records import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue, MemberState

INITIAL_EPOCH = 1
"""The epochs of a group that has no epoch record yet; the first join makes the group epoch 2."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""The member epoch of a member that has left and is expected back: a static one, or reserved."""

NO_NUMBERS: array[int] = array("i")
"""Shared by all members that own nothing; never modified."""

Subscription: TypeAlias = tuple[tuple[TopicName, ...], str]
"""Topic names, and a regular expression (empty for none)."""


class Member:
    """A member, or an entry for one whose remaining records do not make it a member."""

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
        """Its target assignment, as numbers; ``None`` before it has one."""

    @property
    def classic(self) -> ClassicMemberMetadata | None:
        """The metadata of a classic member; ``None`` for a member of the consumer protocol."""
        return None if self.metadata is None else self.metadata.classic_member_metadata

    @property
    def is_reserved(self) -> bool:
        """Whether it has gone, without an instance id, and its partitions await a newcomer."""
        return (
            self.member_epoch == STATIC_LEAVE_EPOCH
            and self.metadata is not None
            and self.metadata.instance_id is None
        )

    @property
    def is_member(self) -> bool:
        """Whether it counts as a member: as in Kafka, a target assignment alone makes none."""
        return self.metadata is not None or self.has_current

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether the member has fully reconciled to the target assignment of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch


class SubscribedTopicsCache:
    """A cache, not state: the results of ``subscribed_topic_indexes``."""

    __slots__ = ("found", "version")

    def __init__(self) -> None:
        self.version = -1
        self.found: dict[Subscription, frozenset[int]] = {}

    def begin(self, version: int) -> None:
        """Clear the cache for a new version of the topics."""
        self.version = version
        self.found = {}
