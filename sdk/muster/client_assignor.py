"""Client-side assignors: the interface that applications implement, and its messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from muster.partitions import TopicPartition, decode_partitions
from muster.v1 import assignors_pb2, types_pb2

CLASSIC_VERSION: Final = -1
"""The version of metadata of classic members, and of no metadata."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of one member: bytes in a version that its assignor supports.

    Changed metadata request a new assignment, and so does a changed ``reason``.
    """

    version: int
    data: bytes = b""
    reason: int = 0


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as an assignor sees it.

    ``metadata`` comes from the member's own assignor. A member without this assignor has empty
    metadata of version -1; a classic member has the bytes of its subscription, also of version -1.
    """

    member_id: str
    instance_id: str
    rack_id: str
    topics: tuple[str, ...]
    metadata: Metadata
    partitions: frozenset[TopicPartition]
    """Its present target assignment."""


@dataclass(frozen=True, slots=True)
class GroupTopic:
    """A topic of the group; ``racks`` has the racks of each partition's replicas, if known."""

    name: str
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """A group that needs an assignment for ``generation``, with metadata up to ``version``."""

    group_id: str
    generation: int
    version: int
    members: Mapping[str, GroupMember]
    topics: Mapping[str, GroupTopic]


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The assignment of one member: partitions, and bytes for its assignor.

    A classic member finds the bytes in the user data of its assignment.
    """

    partitions: frozenset[TopicPartition]
    metadata: Metadata = Metadata(CLASSIC_VERSION)


Assigned: TypeAlias = Mapping[str, MemberAssignment]
"""The assignment of each member, by member id."""


class Assignor(ABC):
    """Computes the assignment of the group when the server asks this member.

    The server selects an assignor (by ``name``) that all members with client-side assignors support
    in a common version, and one member to run it. Versions are those of the metadata; to share a
    group with classic members ``minimum_version`` must be -1.
    """

    name: str
    minimum_version: int = 0
    maximum_version: int = 0

    def metadata(self) -> Metadata:
        """The metadata of this member for the member that computes; called at each join."""
        return Metadata(self.maximum_version)

    @abstractmethod
    def assign(self, group: Group) -> Assigned | Awaitable[Assigned]:
        """Return the assignment of each member id; a member that is left out gets nothing.

        A function runs in a thread, a coroutine function on the event loop, where it is cancelled
        and called again if the group changes meanwhile. If it raises, or takes longer than the
        server waits, the server computes the assignment instead; it also does so while an earlier
        call in a thread has not returned.
        """

    def on_assignment(  # noqa: B027 - overriding it is optional
        self, assignment: MemberAssignment, generation: int
    ) -> Awaitable[None] | None:
        """The member has reached an epoch whose assignment this assignor has computed.

        Called once per generation, after ``on_revoked`` and ``on_assigned``; other members may
        still have to release some of the partitions.
        """


def encode_assignor(assignor: Assignor, reason: int) -> assignors_pb2.ClientAssignor:
    """Encode it for a Join. A ``reason`` that is not 0 replaces the assignor's own."""
    metadata = assignor.metadata()
    return assignors_pb2.ClientAssignor(
        name=assignor.name,
        minimum_version=assignor.minimum_version,
        maximum_version=assignor.maximum_version,
        version=metadata.version,
        metadata=metadata.data,
        reason=reason or metadata.reason,
    )


def decode_group(group_id: str, prepared: assignors_pb2.PreparedAssignment) -> Group:
    """Decode the group for an assignor."""
    members = {
        member.member_id: GroupMember(
            member.member_id,
            member.instance_id,
            member.rack_id,
            tuple(member.subscribed_topic_names),
            Metadata(member.version, member.metadata, member.reason),
            frozenset(decode_partitions(member.partitions, {})),
        )
        for member in prepared.members
    }
    topics = {
        topic.topic_name: GroupTopic(
            topic.topic_name,
            topic.partitions,
            tuple(tuple(racks.rack_ids) for racks in topic.racks),
        )
        for topic in prepared.topics
    }
    return Group(group_id, prepared.group_epoch, prepared.version, members, topics)


def encode_computed(
    assigned: Assigned, topic_ids: Mapping[str, bytes]
) -> list[assignors_pb2.ComputedMember]:
    """Encode the assignments, with topic ids. Raises ``ValueError`` for an unknown topic.

    Duplicate partitions are kept, so that the server refuses them.
    """
    found = []
    for member_id, given in assigned.items():
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(given.partitions):
            by_topic.setdefault(topic, []).append(partition)
        unknown = by_topic.keys() - topic_ids.keys()
        if unknown:
            raise ValueError(f"the group has no topic {min(unknown)}")
        found.append(
            assignors_pb2.ComputedMember(
                member_id=member_id,
                partitions=[
                    types_pb2.TopicPartitions(topic_id=topic_ids[name], partitions=numbers)
                    for name, numbers in by_topic.items()
                ],
                version=given.metadata.version,
                metadata=given.metadata.data,
            )
        )
    return found


def decode_client_assignment(
    local: assignors_pb2.ClientAssignment, names: Mapping[bytes, str]
) -> MemberAssignment:
    """Decode the part of a client-side assignment that is for this member."""
    partitions = frozenset(decode_partitions(local.partitions.topics, names))
    return MemberAssignment(partitions, Metadata(local.version, local.metadata))
