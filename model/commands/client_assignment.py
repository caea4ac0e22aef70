"""Commands by which a member computes its group's assignment, and their responses."""

from __future__ import annotations

from model.caller import Caller
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.records import TopicPartitions
from model.topics import Topic
from model.value import value


@value
class PrepareAssignment:
    """The member that was asked to compute an assignment fetches the state of its group."""

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int


@value
class ComputedAssignment:
    """The computed assignment of one member: partitions, and the assignor's metadata for it."""

    member_id: MemberId
    partitions: tuple[TopicPartitions, ...]
    version: int
    metadata: bytes


@value
class InstallAssignment:
    """Install the assignment computed for ``group_epoch``, or report why there is none."""

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int
    group_epoch: int
    members: tuple[ComputedAssignment, ...] = ()
    failure: str | None = None


ClientAssignmentCommand = PrepareAssignment | InstallAssignment


@value
class PreparedMember:
    """A member as input for the assignor; ``partitions`` are those of its current target."""

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
    """The group at ``group_epoch``; computed metadata must not exceed ``version``."""

    group_epoch: int
    assignor: str
    version: int
    members: tuple[PreparedMember, ...]
    topics: tuple[Topic, ...]


@value
class ClientAssignment:
    """A client-side assignment as sent to the member that it is for.

    ``generation`` is the group epoch that it was computed for.
    """

    assignor: str
    generation: int
    version: int
    metadata: bytes
    partitions: tuple[TopicPartitions, ...]
