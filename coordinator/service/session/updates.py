"""The updates that a session sends about its members, as messages; pure."""

from __future__ import annotations

from coordinator.service.session.assignor_messages import encode_client_assignment
from coordinator.service.session.session_member import SessionMember
from coordinator.service.wire.encode import encode_assignment
from coordinator.service.wire.error_statuses import RETRIABLE, encode_error, encode_group_error
from model.errors import ErrorCode, GroupError
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.topics import TopicImage
from muster.v1 import group_pb2

_SUPERSEDED = "a newer session has resumed the member with this id"


def make_assignment(
    member: SessionMember,
    response: ConsumerGroupHeartbeatResponse,
    image: TopicImage,
    heartbeat_interval_ms: int,
    session_timeout_ms: int,
) -> group_pb2.MemberUpdate:
    """The answer to a heartbeat, as the assignment that the member has to reach next."""
    content = None
    if response.assignment is not None:
        content = encode_assignment(response.assignment, image, response.tokens)
    assignment = group_pb2.Assignment(
        assignment_id=member.assignment_id,
        member_epoch=response.member_epoch,
        assignment=content,
        heartbeat_interval_ms=heartbeat_interval_ms,
        session_timeout_ms=session_timeout_ms,
        client_assignment=None
        if response.client_assignment is None
        else encode_client_assignment(response.client_assignment, image),
        unknown_topics=[name for name in member.subscribed if name not in image.by_name],
    )
    return group_pb2.MemberUpdate(
        group_id=member.group_id,
        member_id=member.member_id,
        join_id=member.join_id,
        assignment=assignment,
    )


def make_fenced(
    group_id: str, member_id: str, join_id: int, error: GroupError
) -> group_pb2.MemberUpdate:
    """The member was fenced or has expired."""
    fenced = group_pb2.Fenced(error=encode_group_error(error))
    return group_pb2.MemberUpdate(
        group_id=group_id, member_id=member_id, join_id=join_id, fenced=fenced
    )


def make_superseded(group_id: str, member_id: str, join_id: int) -> group_pb2.MemberUpdate:
    """A newer session has resumed the member."""
    error = encode_error(ErrorCode.FENCED_MEMBER_EPOCH, _SUPERSEDED)
    return group_pb2.MemberUpdate(
        group_id=group_id,
        member_id=member_id,
        join_id=join_id,
        fenced=group_pb2.Fenced(error=error, superseded=True),
    )


def make_refused(
    group_id: str, member_id: str, join_id: int, error: GroupError
) -> group_pb2.MemberUpdate:
    """Refuse a Join or an Acknowledge."""
    refused = group_pb2.Refused(error=encode_group_error(error), retriable=error.code in RETRIABLE)
    return group_pb2.MemberUpdate(
        group_id=group_id, member_id=member_id, join_id=join_id, refused=refused
    )


def make_left(
    group_id: str, member_id: str, join_id: int, error: GroupError | None
) -> group_pb2.MemberUpdate:
    """Answer a Leave."""
    left = group_pb2.Left(error=None if error is None else encode_group_error(error))
    return group_pb2.MemberUpdate(
        group_id=group_id, member_id=member_id, join_id=join_id, left=left
    )


def make_commit_result(
    group_id: str, member_id: str, result: group_pb2.CommitResult
) -> group_pb2.MemberUpdate:
    """Answer a Commit."""
    return group_pb2.MemberUpdate(group_id=group_id, member_id=member_id, commit_result=result)
