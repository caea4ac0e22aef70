"""A member of a consumer group, as built by replay."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator
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


Likeness: TypeAlias = tuple[str, tuple[TopicName, ...], str]
"""What a newcomer has in common with the member whose partitions it takes over: the client id, the
topic names, and the regular expression."""


def compute_likeness(metadata: ConsumerGroupMemberMetadataValue) -> Likeness:
    regex = metadata.subscribed_topic_regex or ""
    return metadata.client_id, metadata.subscribed_topic_names, regex


class ReservedMembers:
    """The members that have gone and whose partitions await a newcomer.

    They are found by likeness: a newcomer must not be compared with each of very many.
    """

    __slots__ = ("_ids", "_likeness")

    def __init__(self) -> None:
        self._likeness: dict[MemberId, Likeness] = {}
        self._ids: dict[Likeness, list[MemberId]] = {}
        """Ascending: whom a newcomer takes over does not depend on who has gone first, which a
        compacted log does not tell."""

    def __len__(self) -> int:
        return len(self._likeness)

    def __iter__(self) -> Iterator[MemberId]:
        return iter(self._likeness)

    def add(self, member_id: MemberId, metadata: ConsumerGroupMemberMetadataValue) -> None:
        """Reserve a member, or note that its metadata has changed."""
        self.discard(member_id)
        likeness = self._likeness[member_id] = compute_likeness(metadata)
        insort(self._ids.setdefault(likeness, []), member_id)

    def discard(self, member_id: MemberId) -> None:
        """Forget a member, if it is reserved."""
        likeness = self._likeness.pop(member_id, None)
        if likeness is not None:
            ids = self._ids[likeness]
            del ids[bisect_left(ids, member_id)]
            if not ids:
                del self._ids[likeness]

    def find(self, likeness: Likeness) -> MemberId | None:
        """The first member that a newcomer is like."""
        ids = self._ids.get(likeness)
        return None if ids is None else ids[0]


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
