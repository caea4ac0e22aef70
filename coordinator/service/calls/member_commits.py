"""Offset commits with authorization, for sessions and unary calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from coordinator.runtime.api import Answer, Coordinator
from coordinator.service.calls.access import Access
from coordinator.service.wire.encode import encode_failures
from coordinator.service.wire.error_statuses import encode_error, encode_group_error
from model.access.acls import Operation
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.errors import ErrorCode, GroupError
from model.responses.offsets import OffsetCommitResponse
from model.topics import TopicImage
from muster.v1 import types_pb2


class CommitAnswer(NamedTuple):
    """The result: nothing was committed if ``error`` is set, else all but ``failures``."""

    error: types_pb2.Error | None
    failures: list[types_pb2.TopicFailures]


OnCommitted: TypeAlias = Callable[[CommitAnswer], None]


def submit_commit(
    coordinator: Coordinator, access: Access, command: OffsetCommit, on_committed: OnCommitted
) -> None:
    """Submit the authorized part of a commit; topics that the caller may not read fail.

    Raises ``GroupAuthorizationFailed``. ``on_committed`` is called when the rest is durable.
    """
    access.check_group(command.caller, Operation.READ, command.group_id)
    allowed, refused = _split(access, command, coordinator.image)

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            on_committed(CommitAnswer(encode_group_error(answer), []))
        else:
            assert isinstance(answer, OffsetCommitResponse)
            on_committed(CommitAnswer(None, refused + encode_failures(answer)))

    if not allowed:
        on_committed(CommitAnswer(None, refused))
    elif refused:
        coordinator.submit(replace(command, topics=allowed), on_answer)
    else:
        coordinator.submit(command, on_answer)


def _split(
    access: Access, command: OffsetCommit, image: TopicImage
) -> tuple[tuple[TopicOffsets, ...], list[types_pb2.TopicFailures]]:
    allowed, refused = [], []
    for topic in command.topics:
        name = topic.name
        if topic.topic_id is not None:
            # The topic id takes precedence over the name, so authorize the topic of the id.
            known = image.by_id.get(topic.topic_id)
            name = name if known is None else known.name
        if name is None or access.may_topic(command.caller, Operation.READ, name):
            allowed.append(topic)
        else:
            refused.append(_refuse(topic))
    return tuple(allowed), refused


def _refuse(topic: TopicOffsets) -> types_pb2.TopicFailures:
    error = encode_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "")
    return types_pb2.TopicFailures(
        topic_name=topic.name or "",
        topic_id=topic.topic_id or b"",
        partitions=[
            types_pb2.PartitionFailure(partition=partition, error=error)
            for partition in topic.partitions
        ],
    )
