"""Assignors that members of consumer groups bring: what applications write, and what it is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from muster.partitions import TopicPartition, decode_partitions
from muster.v1 import assignors_pb2, types_pb2

CLASSIC_VERSION: Final = -1
"""Of what members of the classic protocol say and are told, and of what says nothing."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What an assignor says of its member: bytes in a version that it supports.

    Other metadata than before ask for an assignment, and so does another ``reason``.
    """

    version: int
    data: bytes = b""
    reason: int = 0


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as an assignor sees it.

    ``metadata`` is what its own assignor says. One that does not have the assignor has none, of
    version -1; one of the classic protocol has the bytes of its subscription, of version -1.
    """

    member_id: str
    instance_id: str
    rack_id: str
    topics: tuple[str, ...]
    metadata: Metadata
    partitions: frozenset[TopicPartition]
    """What the assignment in force gives it."""


@dataclass(frozen=True, slots=True)
class GroupTopic:
    """A topic of the group; ``racks`` are those of each partition's replicas, if any are known."""

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
    """What a member gets: partitions, and bytes for its assignor.

    A member of the classic protocol finds the bytes in the user data of its assignment.
    """

    partitions: frozenset[TopicPartition]
    metadata: Metadata = Metadata(CLASSIC_VERSION)


Assigned: TypeAlias = Mapping[str, MemberAssignment]
"""What each member gets, by its id."""


class Assignor(ABC):
    """Computes the assignment of its group, when the server asks this member of it.

    The server takes an assignor (by ``name``) that every member that brings any supports in a
    common version; who is asked it decides. Versions are those of metadata; to share a group with
    members of the classic protocol ``minimum_version`` has to be -1.
    """

    name: str
    minimum_version: int = 0
    maximum_version: int = 0

    def metadata(self) -> Metadata:
        """What whoever computes is to know of this member; asked for at each join."""
        return Metadata(self.maximum_version)

    @abstractmethod
    def assign(self, group: Group) -> Assigned | Awaitable[Assigned]:
        """What each member gets, by its id; who is left out gets nothing.

        A function is called in a thread, a coroutine function on the loop; it is cancelled where
        the group changes meanwhile, and asked anew. If it raises, or takes longer than the server
        waits, the server computes; so it does while a function has not returned since then.
        """

    def on_assignment(  # noqa: B027 - nothing is done where nothing is overridden
        self, assignment: MemberAssignment, generation: int
    ) -> Awaitable[None] | None:
        """The member is at what an assignor of this name has computed for it.

        Called once a generation, after ``on_revoked`` and ``on_assigned``; of the partitions some
        may be another's still.
        """


def encode_assignor(assignor: Assignor, reason: int) -> assignors_pb2.LocalAssignor:
    """What a Join says of it. A ``reason`` that is not 0 goes before the assignor's own."""
    said = assignor.metadata()
    return assignors_pb2.LocalAssignor(
        name=assignor.name,
        minimum_version=assignor.minimum_version,
        maximum_version=assignor.maximum_version,
        version=said.version,
        metadata=said.data,
        reason=reason or said.reason,
    )


def decode_group(group_id: str, prepared: assignors_pb2.PreparedAssignment) -> Group:
    """The group as an assignor sees it."""
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
    """What members get, topics by their ids. Raises ``ValueError`` for a topic that there is not.

    A partition that comes twice comes twice: the server refuses it.
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


def decode_told(
    told: assignors_pb2.LocalAssignment, names: Mapping[bytes, str]
) -> MemberAssignment:
    """What the member is told of an assignment."""
    partitions = frozenset(decode_partitions(told.partitions.topics, names))
    return MemberAssignment(partitions, Metadata(told.version, told.metadata))
