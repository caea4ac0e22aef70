"""``muster.v1.AdminService``, for operators and tools; errors are statuses with details."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TypeAlias, TypeVar

import grpc.aio

from coordinator.service.admin import description_messages
from coordinator.service.admin.group_administration import GroupAdministration
from coordinator.service.admin.group_descriptions import describe_group, encode_description
from coordinator.service.admin.group_lists import compute_group_page, decode_group_filter
from coordinator.service.admin.group_watching import GroupWatching
from coordinator.service.admin.member_removal import MemberRemoval
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.past_positions import decode_as_of, encode_position, read_past
from coordinator.service.wire.answer_slices import make_rows, run_steps
from coordinator.service.wire.decode import check_topic_name, decode_any_group_id, decode_racks
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.paging import (
    Page,
    compute_page,
    compute_page_token,
    compute_visible,
)
from model.access.acls import GROUP_OPERATIONS, Operation
from model.caller import Caller
from model.commands.command import TopicCommand
from model.commands.groups import ConsumerGroupDescribe, DescribeGroups, ListGroups
from model.commands.topics import CreateTopic, DeleteTopic, GrowTopic, SetTopicRacks
from model.errors import (
    GroupError,
    InconsistentTopicId,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from model.ids import ZERO_TOPIC_ID, GroupId, TopicId, TopicName
from model.responses.groups import (
    ListGroupsResponse,
)
from model.responses.topics import TopicResponse
from model.topics import Topic
from muster.v1 import admin_pb2, admin_pb2_grpc

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]


class AdminService(
    GroupAdministration, MemberRemoval, GroupWatching, admin_pb2_grpc.AdminServiceServicer
):
    """Lists, describes and watches groups, and manages topics.

    See ``coordinator.service.wire.error_statuses`` for the statuses of errors.
    """

    # -------------------------------------------------------------------------------- groups

    async def ListGroups(  # noqa: N802
        self,
        request: admin_pb2.ListGroupsRequest,
        context: _Context[admin_pb2.ListGroupsRequest, admin_pb2.ListGroupsResponse],
    ) -> admin_pb2.ListGroupsResponse:
        async with Guard(context):
            means = decode_group_filter(request)
            page = self._page(request, means.as_values())
            caller = compute_caller(context.peer(), "")
            if means.topic is not None:
                self._access.check_topics(caller, Operation.DESCRIBE, (means.topic,))
            response = await self._coordinator.call(
                ListGroups(caller, means.states, means.types, means.topic)
            )
            assert isinstance(response, ListGroupsResponse)
            sees_all = self._access.sees_cluster(caller, Operation.DESCRIBE)
            steps = compute_group_page(
                response.groups,
                means,
                (lambda _: True) if sees_all else partial(self._may_list, caller),
                page,
            )
            found = await run_steps(steps)
            return admin_pb2.ListGroupsResponse(
                groups=[description_messages.encode_summary(group) for group in found.groups],
                next_page_token=(
                    ""
                    if found.last_key is None
                    else compute_page_token(found.last_key, means.as_values())
                ),
                total_size=found.total,
            )

    async def DescribeGroup(  # noqa: N802
        self,
        request: admin_pb2.DescribeGroupRequest,
        context: _Context[admin_pb2.DescribeGroupRequest, admin_pb2.DescribeGroupResponse],
    ) -> admin_pb2.DescribeGroupResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_any_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.DESCRIBE, group_id)
            rights = self._list_rights(caller, group_id, request.include_authorized_operations)
            if not request.HasField("as_of"):
                found = await describe_group(self._coordinator, caller, group_id)
                self._access.check_topics(caller, Operation.DESCRIBE, found.topics)
                return admin_pb2.DescribeGroupResponse(
                    group=found.group, authorized_operations=rights
                )
            as_of = decode_as_of(request.as_of)
            commands = (
                ConsumerGroupDescribe(caller, (group_id,)),
                DescribeGroups(caller, (group_id,)),
            )
            past = await read_past(self._services, group_id, as_of, commands)
            found = await encode_description(self._coordinator, *past.responses)
            self._access.check_topics(caller, Operation.DESCRIBE, found.topics)
            return admin_pb2.DescribeGroupResponse(
                group=found.group,
                position=encode_position(past.position),
                authorized_operations=rights,
            )

    def _list_rights(self, caller: Caller, group_id: GroupId, is_asked: bool) -> list[str]:
        """What the caller may do to the group, if that is asked for."""
        return [
            operation.value
            for operation in GROUP_OPERATIONS
            if is_asked and self._access.sees_group(caller, operation, group_id)
        ]

    def _may_list(self, caller: Caller, group_id: GroupId) -> bool:
        return self._access.sees_group(caller, Operation.DESCRIBE, group_id)

    # -------------------------------------------------------------------------------- topics

    async def ListTopics(  # noqa: N802
        self,
        request: admin_pb2.ListTopicsRequest,
        context: _Context[admin_pb2.ListTopicsRequest, admin_pb2.ListTopicsResponse],
    ) -> admin_pb2.ListTopicsResponse:
        async with Guard(context):
            filters = (request.topic_name,) if request.topic_name else ()
            page = self._page(request, filters)
            caller = compute_caller(context.peer(), "")
            by_name = self._coordinator.image.by_name
            sees = partial(self._access.sees_topic, caller, Operation.DESCRIBE)
            asked = TopicName(request.topic_name)
            names = sorted(by_name) if not asked else [asked] if asked in by_name else []
            listed, more = await run_steps(compute_visible(names, sees, page))
            response = admin_pb2.ListTopicsResponse(
                next_page_token=compute_page_token(listed[-1], filters) if more else ""
            )
            topics = (by_name[name] for name in listed)
            add, encode = response.topics.extend, description_messages.encode_topic
            await run_steps(make_rows(add, encode, topics))
            return response

    async def CreateTopic(  # noqa: N802
        self,
        request: admin_pb2.CreateTopicRequest,
        context: _Context[admin_pb2.CreateTopicRequest, admin_pb2.CreateTopicResponse],
    ) -> admin_pb2.CreateTopicResponse:
        async with Guard(context, topic_name=request.topic_name):
            name = self._check_topic(request.topic_name, request.num_partitions)
            caller = compute_caller(context.peer(), "")
            if not self._access.sees_cluster(caller, Operation.CREATE):
                self._access.check_topics(caller, Operation.CREATE, (name,))

            async def carry_out() -> admin_pb2.CreateTopicResponse:
                topic_id = _make_topic_id()
                command = CreateTopic(
                    caller, name, topic_id, request.num_partitions, request.validate_only
                )
                topic = await self._change_topic(command)
                if request.validate_only:
                    topic.topic_id = b""
                return admin_pb2.CreateTopicResponse(topic=topic)

            return await self._request_ids.once(
                caller.principal, request, admin_pb2.CreateTopicResponse, carry_out
            )

    async def GrowTopic(  # noqa: N802
        self,
        request: admin_pb2.GrowTopicRequest,
        context: _Context[admin_pb2.GrowTopicRequest, admin_pb2.GrowTopicResponse],
    ) -> admin_pb2.GrowTopicResponse:
        async with Guard(context, topic_name=request.topic_name):
            name = self._check_topic(request.topic_name, request.num_partitions)
            caller = compute_caller(context.peer(), "")
            self._access.check_topics(caller, Operation.ALTER, (name,))

            async def carry_out() -> admin_pb2.GrowTopicResponse:
                command = GrowTopic(caller, name, request.num_partitions, request.validate_only)
                return admin_pb2.GrowTopicResponse(topic=await self._change_topic(command))

            return await self._request_ids.once(
                caller.principal, request, admin_pb2.GrowTopicResponse, carry_out
            )

    async def SetTopicRacks(  # noqa: N802
        self,
        request: admin_pb2.SetTopicRacksRequest,
        context: _Context[admin_pb2.SetTopicRacksRequest, admin_pb2.SetTopicRacksResponse],
    ) -> admin_pb2.SetTopicRacksResponse:
        async with Guard(context, topic_name=request.topic_name):
            check_topic_name(request.topic_name)
            name = TopicName(request.topic_name)
            caller = compute_caller(context.peer(), "")
            self._access.check_topics(caller, Operation.ALTER, (name,))
            racks = decode_racks(request.replica_racks, self._services.limits)

            async def carry_out() -> admin_pb2.SetTopicRacksResponse:
                command = SetTopicRacks(caller, name, racks, request.validate_only)
                return admin_pb2.SetTopicRacksResponse(topic=await self._change_topic(command))

            return await self._request_ids.once(
                caller.principal, request, admin_pb2.SetTopicRacksResponse, carry_out
            )

    async def DeleteTopic(  # noqa: N802
        self,
        request: admin_pb2.DeleteTopicRequest,
        context: _Context[admin_pb2.DeleteTopicRequest, admin_pb2.DeleteTopicResponse],
    ) -> admin_pb2.DeleteTopicResponse:
        async with Guard(context, topic_name=request.topic_name):
            caller = compute_caller(context.peer(), "")

            async def carry_out() -> admin_pb2.DeleteTopicResponse:
                topic = self._find_topic(caller, request)
                if request.validate_only:
                    return admin_pb2.DeleteTopicResponse(
                        topic=description_messages.encode_topic(topic)
                    )
                command = DeleteTopic(caller, topic.name, topic.topic_id)
                return admin_pb2.DeleteTopicResponse(topic=await self._change_topic(command))

            kind = admin_pb2.DeleteTopicResponse
            answer = await self._request_ids.once(caller.principal, request, kind, carry_out)
            # The response to a repeated request has the topic's name, so authorize it again.
            self._check_deletable(caller, TopicName(answer.topic.topic_name), request)
            return answer

    async def _change_topic(self, command: TopicCommand) -> admin_pb2.Topic:
        response = await self._coordinator.call(command)
        assert isinstance(response, TopicResponse)
        return description_messages.encode_topic(response.topic)

    def _check_topic(self, name: str, partitions: int) -> TopicName:
        check_topic_name(name)
        if partitions < 1:
            raise InvalidField("num_partitions", "num_partitions must be at least 1")
        return TopicName(name)

    def _find_topic(self, caller: Caller, request: admin_pb2.DeleteTopicRequest) -> Topic:
        """Find the topic of the request; one that the caller may not describe is unknown."""
        image = self._coordinator.image
        if request.topic_id:
            topic = image.by_id.get(TopicId(request.topic_id))
        elif request.topic_name:
            topic = image.by_name.get(TopicName(request.topic_name))
        else:
            raise InvalidField("topic_name", "set topic_name or topic_id")
        if topic is None:
            raise _compute_missing(request)
        self._check_deletable(caller, topic.name, request)
        if request.topic_name and topic.name != request.topic_name:
            raise InconsistentTopicId("topic_id and topic_name refer to different topics")
        return topic

    def _check_deletable(
        self, caller: Caller, name: TopicName, request: admin_pb2.DeleteTopicRequest
    ) -> None:
        if self._access.sees_cluster(caller, Operation.DELETE):
            return
        if not self._access.may_topic(caller, Operation.DESCRIBE, name):
            raise _compute_missing(request)
        if not self._access.may_topic(caller, Operation.DELETE, name):
            raise TopicAuthorizationFailed(
                f"{caller.principal} is not authorized to DELETE this topic"
            )

    def _page(
        self,
        request: admin_pb2.ListGroupsRequest | admin_pb2.ListTopicsRequest,
        filters: tuple[object, ...],
    ) -> Page:
        settings = self._services.settings
        return compute_page(
            request.page_size,
            request.page_token,
            filters,
            settings.grpc_page_size,
            settings.grpc_page_size_max,
        )


def _make_topic_id() -> TopicId:
    """Generate a random topic id, as in Kafka; never the zero id."""
    topic_id = TopicId(uuid.uuid4().bytes)
    assert topic_id != ZERO_TOPIC_ID
    return topic_id


def _compute_missing(request: admin_pb2.DeleteTopicRequest) -> GroupError:
    missing = UnknownTopicId if request.topic_id else UnknownTopicOrPartition
    return missing("the topic does not exist")
