"""Messages of client-side assignors: those in a Join, and the four that carry an assignment.

Pure. Checks that need the state of the group are left to the core.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.service.session.session_member import SessionMember
from coordinator.service.wire.decode import check_id, decode_member_id, decode_owned
from coordinator.service.wire.encode import encode_assignment
from coordinator.service.wire.error_statuses import encode_group_error
from coordinator.service.wire.limits import Limits
from model.caller import Caller
from model.client_assignors import ClientAssignor
from model.commands.client_assignment import (
    ClientAssignment,
    ComputedAssignment,
    InstallAssignment,
    PrepareAssignment,
    PrepareAssignmentResponse,
    PreparedMember,
)
from model.errors import GroupError, InvalidRequest
from model.ids import GroupId, MemberId
from model.topics import Topic, TopicImage
from muster.v1 import assignors_pb2, group_pb2


def decode_client_assignors(
    assignors: Sequence[assignors_pb2.ClientAssignor], limits: Limits
) -> tuple[ClientAssignor, ...]:
    """Decode the assignors of a Join. Raises ``InvalidField`` if a name is too long."""
    for each in assignors:
        check_id(each.name, "client_assignors", limits)
    return tuple(
        ClientAssignor(
            each.name,
            each.minimum_version,
            each.maximum_version,
            each.version,
            each.metadata,
            each.reason,
        )
        for each in assignors
    )


def decode_prepare(
    caller: Caller,
    group_id: GroupId,
    member_id: MemberId,
    message: assignors_pb2.PrepareAssignment,
) -> PrepareAssignment:
    return PrepareAssignment(caller, group_id, member_id, message.member_epoch)


def decode_install(
    caller: Caller,
    group_id: GroupId,
    member_id: MemberId,
    message: assignors_pb2.InstallAssignment,
    image: TopicImage,
    limits: Limits,
) -> InstallAssignment:
    """Raises ``InvalidRequest``, ``InvalidField`` and what ``decode_owned`` raises."""
    count = sum(len(topic.partitions) for given in message.members for topic in given.partitions)
    if count > limits.partitions:
        raise InvalidRequest(
            f"{count} partitions in one request; at most {limits.partitions} are allowed"
        )
    members = tuple(
        ComputedAssignment(
            decode_member_id(given.member_id, limits),
            decode_owned(given.partitions, image, limits),
            given.version,
            given.metadata,
        )
        for given in message.members
    )
    return InstallAssignment(
        caller,
        group_id,
        member_id,
        message.member_epoch,
        message.group_epoch,
        members,
        message.failure or None,
    )


def encode_client_assignment(
    local: ClientAssignment, image: TopicImage
) -> assignors_pb2.ClientAssignment:
    """The assignment that a client-side assignor has computed for the member."""
    return assignors_pb2.ClientAssignment(
        assignor=local.assignor,
        generation=local.generation,
        version=local.version,
        metadata=local.metadata,
        partitions=encode_assignment(local.partitions, image),
    )


def make_compute(member: SessionMember) -> group_pb2.MemberUpdate:
    """Ask the member to compute an assignment."""
    return group_pb2.MemberUpdate(
        group_id=member.group_id,
        member_id=member.member_id,
        join_id=member.join_id,
        compute_assignment=assignors_pb2.ComputeAssignment(),
    )


def make_prepared(
    group_id: GroupId,
    member_id: MemberId,
    join_id: int,
    answer: PrepareAssignmentResponse | GroupError,
    image: TopicImage,
) -> group_pb2.MemberUpdate:
    """Answer a PrepareAssignment."""
    if isinstance(answer, GroupError):
        prepared = assignors_pb2.PreparedAssignment(error=encode_group_error(answer))
    else:
        prepared = assignors_pb2.PreparedAssignment(
            group_epoch=answer.group_epoch,
            assignor=answer.assignor,
            version=answer.version,
            members=[_encode_member(member, image) for member in answer.members],
            topics=[_encode_topic(topic) for topic in answer.topics],
        )
    return group_pb2.MemberUpdate(
        group_id=group_id, member_id=member_id, join_id=join_id, prepared_assignment=prepared
    )


def make_installed(
    group_id: GroupId,
    member_id: MemberId,
    join_id: int,
    group_epoch: int,
    error: GroupError | None,
) -> group_pb2.MemberUpdate:
    """Answer an InstallAssignment."""
    installed = assignors_pb2.InstalledAssignment(
        error=None if error is None else encode_group_error(error), group_epoch=group_epoch
    )
    return group_pb2.MemberUpdate(
        group_id=group_id, member_id=member_id, join_id=join_id, installed_assignment=installed
    )


def _encode_member(member: PreparedMember, image: TopicImage) -> assignors_pb2.PreparedMember:
    return assignors_pb2.PreparedMember(
        member_id=member.member_id,
        instance_id=member.instance_id or "",
        rack_id=member.rack_id or "",
        subscribed_topic_names=member.subscribed_topic_names,
        reason=member.reason,
        version=member.version,
        metadata=member.metadata,
        partitions=encode_assignment(member.partitions, image).topics,
    )


def _encode_topic(topic: Topic) -> assignors_pb2.PreparedTopic:
    return assignors_pb2.PreparedTopic(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partitions=topic.partitions,
        racks=[assignors_pb2.PartitionRacks(rack_ids=racks) for racks in topic.racks],
    )
