"""A member computes the assignment of its group: the two commands, and what the first brings."""

from __future__ import annotations

from model.caller import Caller
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.records import TopicPartitions
from model.topics import Topic
from model.value import value


@value
class PrepareAssignment:
    """The member that was asked for an assignment wants to know all of its group."""

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int


@value
class ComputedAssignment:
    """What one member gets: partitions, and bytes of the assignor for it."""

    member_id: MemberId
    partitions: tuple[TopicPartitions, ...]
    version: int
    metadata: bytes


@value
class InstallAssignment:
    """The assignment that was computed for ``group_epoch``; or why there is none (``failure``)."""

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int
    group_epoch: int
    members: tuple[ComputedAssignment, ...] = ()
    failure: str | None = None


LocalAssignmentCommand = PrepareAssignment | InstallAssignment


@value
class PreparedMember:
    """A member as an assignor is told of it; ``partitions`` are those of the target in force."""

    member_id: MemberId
    instance_id: InstanceId | None
    rack_id: str | None
    subscribed_topic_names: tuple[TopicName, ...]
    reason: int
    version: int
    metadata: bytes
    partitions: tuple[TopicPartitions, ...]


@value
class PrepareAssignmentResponse:
    """All of the group at ``group_epoch``; metadata are to be of no higher version than that."""

    group_epoch: int
    assignor: str
    version: int
    members: tuple[PreparedMember, ...]
    topics: tuple[Topic, ...]


@value
class LocalAssignment:
    """What a member is told of an assignment that another one, or it itself, has computed.

    ``generation`` is the epoch that it was computed for.
    """

    assignor: str
    generation: int
    version: int
    metadata: bytes
    partitions: tuple[TopicPartitions, ...]
