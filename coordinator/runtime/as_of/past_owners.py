"""Who owns the partitions of a group, by its records; and which partitions a record is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from coordinator.core.state.classic.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_assigned_partitions,
)
from model.ids import MemberId, TopicId, TopicName
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    GroupMetadataKey,
    GroupMetadataValue,
    RecordKey,
    RecordValue,
    TopicPartitions,
)
from model.past.ownerships import OwningMember
from model.topics import TopicImage

Place: TypeAlias = tuple[TopicId | TopicName, int]
"""A partition, by the id of its topic; by its name, for a classic group whose topic is gone."""

_Held: TypeAlias = tuple[frozenset[Place], frozenset[Place]]


@dataclass(slots=True)
class PastOwners:
    """The members of a group and what they have, replayed record by record.

    ``image`` has the topics as they are now: it tells the ids of what classic members own.
    """

    image: TopicImage
    epoch: int = 0
    members: dict[MemberId, OwningMember] = field(default_factory=dict)
    owners: dict[Place, MemberId] = field(default_factory=dict)
    revoking: set[Place] = field(default_factory=set)
    targets: dict[Place, MemberId] = field(default_factory=dict)
    _held: dict[MemberId, _Held] = field(default_factory=dict)
    _targeted: dict[MemberId, frozenset[Place]] = field(default_factory=dict)
    _classic: set[MemberId] = field(default_factory=set)

    def apply(self, key: RecordKey, value: RecordValue | None, touched: set[Place]) -> None:
        """Apply a record, and add to ``touched`` the partitions that it is about."""
        match key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue(epoch=epoch):
                self.epoch = epoch
            case ConsumerGroupMemberMetadataKey(member_id=member_id), None:
                self.members.pop(member_id, None)
            case (
                ConsumerGroupMemberMetadataKey(member_id=member_id),
                ConsumerGroupMemberMetadataValue() as said,
            ):
                self.members[member_id] = OwningMember(
                    member_id, said.client_id, said.client_host, said.instance_id or ""
                )
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id), None:
                self._hold(member_id, frozenset(), frozenset(), touched)
            case (
                ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id),
                ConsumerGroupCurrentMemberAssignmentValue() as current,
            ):
                assigned = _collect(current.assigned_partitions)
                pending = _collect(current.partitions_pending_revocation)
                self._hold(member_id, assigned, pending, touched)
            case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id), None:
                self._aim(member_id, frozenset(), touched)
            case (
                ConsumerGroupTargetAssignmentMemberKey(member_id=member_id),
                ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics),
            ):
                self._aim(member_id, _collect(topics), touched)
            case GroupMetadataKey(), None:
                self._apply_classic(None, touched)
            case GroupMetadataKey(), GroupMetadataValue() as classic:
                self._apply_classic(classic, touched)
            case _:
                pass

    def find_member(self, member_id: MemberId) -> OwningMember:
        """The member; with its id alone if a compacted log has nothing else of it yet."""
        return self.members.get(member_id) or OwningMember(member_id, "", "", "")

    def _hold(
        self,
        member_id: MemberId,
        assigned: frozenset[Place],
        pending: frozenset[Place],
        touched: set[Place],
    ) -> None:
        # In one write, a partition may get its new owner before the former gives it up.
        were_assigned, were_pending = self._held.pop(member_id, (frozenset(), frozenset()))
        for place in were_assigned | were_pending:
            if self.owners.get(place) == member_id:
                del self.owners[place]
                self.revoking.discard(place)
        for place in assigned | pending:
            self.owners[place] = member_id
        self.revoking -= assigned
        self.revoking |= pending
        touched.update(were_assigned, were_pending, assigned, pending)
        if assigned or pending:
            self._held[member_id] = assigned, pending

    def _aim(self, member_id: MemberId, places: frozenset[Place], touched: set[Place]) -> None:
        before = self._targeted.pop(member_id, frozenset())
        for place in before:
            if self.targets.get(place) == member_id:
                del self.targets[place]
        for place in places:
            self.targets[place] = member_id
        touched.update(before, places)
        if places:
            self._targeted[member_id] = places

    def _apply_classic(self, group: GroupMetadataValue | None, touched: set[Place]) -> None:
        """A generation: the leader's assignment is the target, and takes effect at once."""
        members = () if group is None else group.members
        gone = self._classic - {member.member_id for member in members}
        for member_id in gone:
            self.members.pop(member_id, None)
            self._hold(member_id, frozenset(), frozenset(), touched)
            self._aim(member_id, frozenset(), touched)
        self._classic = {member.member_id for member in members}
        if group is None:
            return
        self.epoch = group.generation
        for member in members:
            places: frozenset[Place] = frozenset()
            if group.protocol_type == PROTOCOL_TYPE:
                places = self._decode_assignment(member.assignment)
            self.members[member.member_id] = OwningMember(
                member.member_id,
                member.client_id,
                member.client_host,
                member.group_instance_id or "",
            )
            self._hold(member.member_id, places, frozenset(), touched)
            self._aim(member.member_id, places, touched)

    def _decode_assignment(self, assignment: bytes) -> frozenset[Place]:
        found: set[Place] = set()
        for given in decode_assigned_partitions(assignment) or ():
            topic = self.image.by_name.get(TopicName(given.topic))
            name = TopicName(given.topic) if topic is None else topic.topic_id
            found.update((name, partition) for partition in given.partitions)
        return frozenset(found)


def _collect(topics: Iterable[AssignedTopicPartitions | TopicPartitions]) -> frozenset[Place]:
    return frozenset(
        (topic.topic_id, partition) for topic in topics for partition in topic.partitions
    )
