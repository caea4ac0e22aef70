"""``muster.v1.GroupService``: decode, authorize, submit, encode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import grpc.aio

from coordinator.runtime.as_of.history_reads import HistoryError
from coordinator.runtime.clock import SystemClock
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.member_commits import CommitAnswer, submit_commit
from coordinator.service.calls.past_positions import decode_as_of, encode_position, read_past
from coordinator.service.calls.sequences import Sequences
from coordinator.service.calls.services import Services
from coordinator.service.ends.end_offsets import add_end_offsets
from coordinator.service.session.end_report_calls import take_report
from coordinator.service.session.session_stream import serve_session
from coordinator.service.wire.answer_slices import run_steps
from coordinator.service.wire.decode import check_id, decode_commit, decode_fetch, decode_heartbeat
from coordinator.service.wire.encode import encode_assignment, encode_fetched
from coordinator.service.wire.error_statuses import encode_error, encode_group_error
from model.access.acls import Operation
from model.caller import Caller
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat
from model.commands.offsets import OffsetFetch, TopicToFetch
from model.errors import CoordinatorNotAvailable, ErrorCode, GroupError
from model.ids import GroupId, MemberId
from model.log.records import TopicPartitions
from model.responses.consumer import ConsumerGroupHeartbeatResponse, ConsumerGroupLeaveResponse
from model.responses.offsets import FetchedTopic, OffsetFetchResponse
from model.responses.response import Response
from muster.v1 import group_pb2, group_pb2_grpc, types_pb2

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]


class GroupService(group_pb2_grpc.GroupServiceServicer):
    """Protocol errors go into the response: see ``coordinator.service.wire.error_statuses``."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._commits = Sequences()

    async def Session(  # noqa: N802
        self,
        request: AsyncIterator[group_pb2.SessionRequest],
        context: _Context[group_pb2.SessionRequest, group_pb2.SessionResponse],
    ) -> None:
        async with Guard(context):
            await serve_session(self._services, context)

    async def Heartbeat(  # noqa: N802
        self,
        request: group_pb2.HeartbeatRequest,
        context: _Context[group_pb2.HeartbeatRequest, group_pb2.HeartbeatResponse],
    ) -> group_pb2.HeartbeatResponse:
        async with Guard(context):
            try:
                return await self._heartbeat(request, context.peer())
            except GroupError as error:
                return group_pb2.HeartbeatResponse(error=encode_group_error(error))

    async def CommitOffsets(  # noqa: N802
        self,
        request: group_pb2.CommitOffsetsRequest,
        context: _Context[group_pb2.CommitOffsetsRequest, group_pb2.CommitOffsetsResponse],
    ) -> group_pb2.CommitOffsetsResponse:
        async with Guard(context):
            try:
                return await self._commit(request, context.peer())
            except GroupError as error:
                return group_pb2.CommitOffsetsResponse(error=encode_group_error(error))

    async def FetchOffsets(  # noqa: N802
        self,
        request: group_pb2.FetchOffsetsRequest,
        context: _Context[group_pb2.FetchOffsetsRequest, group_pb2.FetchOffsetsResponse],
    ) -> group_pb2.FetchOffsetsResponse:
        async with Guard(context, group_id=request.group_id):
            try:
                return await self._fetch(request, context.peer())
            except HistoryError:
                raise
            except GroupError as error:
                return group_pb2.FetchOffsetsResponse(error=encode_group_error(error))

    async def ReportEndOffsets(  # noqa: N802
        self,
        request: group_pb2.ReportEndOffsetsRequest,
        context: _Context[group_pb2.ReportEndOffsetsRequest, group_pb2.ReportEndOffsetsResponse],
    ) -> group_pb2.ReportEndOffsetsResponse:
        async with Guard(context):
            try:
                caller = self._caller(context.peer(), request.client_id)
                return await take_report(self._services, caller, request)
            except GroupError as error:
                return group_pb2.ReportEndOffsetsResponse(error=encode_group_error(error))

    def _caller(self, peer: str, client_id: str) -> Caller:
        check_id(client_id, "client_id", self._services.limits)
        return compute_caller(peer, client_id)

    async def _heartbeat(
        self, request: group_pb2.HeartbeatRequest, peer: str
    ) -> group_pb2.HeartbeatResponse:
        coordinator, access = self._services.coordinator, self._services.access
        caller = self._caller(peer, request.client_id)
        command = decode_heartbeat(caller, request, coordinator.image, self._services.limits)
        access.check_group(caller, Operation.READ, command.group_id)
        if isinstance(command, ConsumerGroupHeartbeat):
            names = command.subscribed_topic_names
            if names is not UNCHANGED:
                access.check_topics(caller, Operation.DESCRIBE, names)
            else:
                self._check_rights(caller, command.group_id, command.member_id)
        response = await coordinator.call(command)
        if isinstance(response, ConsumerGroupLeaveResponse):
            return group_pb2.HeartbeatResponse(
                member_id=response.member_id, member_epoch=response.member_epoch
            )
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        assignment = None
        if response.assignment is not None:
            # A right may have been revoked while the answer became durable.
            self._check_rights(caller, command.group_id, response.member_id, response.assignment)
            assignment = encode_assignment(response.assignment, coordinator.image, response.tokens)
        return group_pb2.HeartbeatResponse(
            member_id=response.member_id,
            member_epoch=response.member_epoch,
            heartbeat_interval_ms=response.heartbeat_interval_ms,
            session_timeout_ms=coordinator.settings_of(
                command.group_id
            ).group_consumer_session_timeout_ms,
            assignment=assignment,
        )

    def _check_rights(
        self,
        caller: Caller,
        group_id: GroupId,
        member_id: MemberId,
        assignment: Iterable[TopicPartitions] = (),
    ) -> None:
        """Raise the error that refuses a member what it has, or its assignment."""
        rights = self._services.rights
        if rights is None:
            return
        refusal = rights.find_refused_answer(caller, group_id, member_id, assignment)
        if refusal is not None:
            raise refusal

    async def _commit(
        self, request: group_pb2.CommitOffsetsRequest, peer: str
    ) -> group_pb2.CommitOffsetsResponse:
        caller = self._caller(peer, request.client_id)
        command = decode_commit(caller, request, self._services.limits)
        # Authorize first: a stranger's sequence number would block the member's own commits.
        self._services.access.check_group(caller, Operation.READ, command.group_id)
        sequence = request.sequence if command.member_id else 0
        noted = self._commits.note((command.group_id, command.member_id), sequence)
        if noted is None:
            raise CoordinatorNotAvailable("A later commit of the member came before this one.")
        done: asyncio.Future[CommitAnswer] = asyncio.get_running_loop().create_future()

        def on_committed(answer: CommitAnswer) -> None:
            if not done.done():
                done.set_result(answer)

        submit_commit(self._services.coordinator, self._services.access, command, on_committed)
        answer = await done
        if answer.error is not None or _count(answer.failures) == _count(request.topics):
            # If nothing was committed, the core may not have checked that this is the member.
            self._commits.withdraw(noted)
        return group_pb2.CommitOffsetsResponse(error=answer.error, failures=answer.failures)

    async def _fetch(
        self, request: group_pb2.FetchOffsetsRequest, peer: str
    ) -> group_pb2.FetchOffsetsResponse:
        caller = self._caller(peer, request.client_id)
        command = decode_fetch(caller, request, self._services.limits)
        self._services.access.check_group(caller, Operation.DESCRIBE, command.group_id)
        as_of = decode_as_of(request.as_of) if request.HasField("as_of") else None
        command, refused = self._split_fetch(command)
        topics, position = refused, None
        if command.topics is None or command.topics or not refused:
            response: Response | GroupError
            if as_of is None:
                response = await self._services.coordinator.call(command)
            else:
                past = await read_past(self._services, command.group_id, as_of, (command,))
                # Reading the log may take long.
                self._services.access.check_group(caller, Operation.DESCRIBE, command.group_id)
                (response,) = past.responses
                position = encode_position(past.position)
            if isinstance(response, GroupError):
                raise response
            assert isinstance(response, OffsetFetchResponse)
            encoded = [
                topic
                if isinstance(topic, types_pb2.CommittedTopic)
                else await run_steps(encode_fetched(topic))
                for topic in self._select_shown(command, response)
            ]
            if request.with_end_offsets and as_of is None:
                await add_end_offsets(
                    self._services.known_ends,
                    self._services.end_offset_times,
                    _select_seen(encoded),
                    SystemClock().monotonic_ms,
                )
            topics = refused + encoded
        return group_pb2.FetchOffsetsResponse(topics=topics, position=position)

    def _select_shown(
        self, command: OffsetFetch, response: OffsetFetchResponse
    ) -> Iterator[FetchedTopic | types_pb2.CommittedTopic]:
        """The topics that the caller may see, and an error for each that it asked for by its id.

        The past knows the names of ids that are unknown now.
        """
        access, caller = self._services.access, command.caller
        if command.topics is None:
            for topic in response.topics:
                if topic.name is None or access.sees_topic(caller, Operation.DESCRIBE, topic.name):
                    yield topic
            return
        for wanted, topic in zip(command.topics, response.topics, strict=True):
            name = topic.name if wanted.topic_id is not None else None
            if name is None or access.may_topic(caller, Operation.DESCRIBE, name):
                yield topic
            else:
                yield _refuse(wanted)

    def _split_fetch(
        self, command: OffsetFetch
    ) -> tuple[OffsetFetch, list[types_pb2.CommittedTopic]]:
        """The fetch of the authorized topics, and an error for each of the others."""
        if command.topics is None:
            return command, []
        image = self._services.coordinator.image
        allowed, refused = [], []
        for topic in command.topics:
            known = None if topic.topic_id is None else image.by_id.get(topic.topic_id)
            name = topic.name if known is None else known.name
            if name is None or self._services.access.may_topic(
                command.caller, Operation.DESCRIBE, name
            ):
                allowed.append(topic)
            else:
                refused.append(_refuse(topic))
        return replace(command, topics=tuple(allowed)), refused


def _count(
    topics: Sequence[types_pb2.TopicOffsets] | Sequence[types_pb2.TopicFailures],
) -> int:
    return sum(len(topic.partitions) for topic in topics)


def _select_seen(topics: Iterable[types_pb2.CommittedTopic]) -> list[types_pb2.CommittedTopic]:
    """The topics that were not refused, of which the caller may know the ends."""
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return [
        topic
        for topic in topics
        if not topic.partitions or topic.partitions[0].error.error_code != refused
    ]


def _refuse(topic: TopicToFetch) -> types_pb2.CommittedTopic:
    error = encode_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "")
    return types_pb2.CommittedTopic(
        topic_name=topic.name or "",
        topic_id=topic.topic_id or b"",
        partitions=[
            types_pb2.CommittedOffset(partition=partition, error=error)
            for partition in topic.partitions
        ],
    )
