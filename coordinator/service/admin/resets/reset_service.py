"""``muster.v1.ResetService``: committed offsets of groups, set from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import grpc.aio

from coordinator.service.admin.resets.past_offsets import (
    LOG_OFFSET_MAX,
    Undone,
    encode_change,
    find_committed,
    read_past_offsets,
    read_undone,
    show_undone,
)
from coordinator.service.admin.resets.reset_plan import (
    Known,
    Offsets,
    Place,
    compute_again,
    compute_plan,
    compute_preview,
    compute_topic_offsets,
    encode_plan,
)
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.past_positions import decode_as_of
from coordinator.service.calls.request_ids import RequestIds
from coordinator.service.calls.services import Services
from coordinator.service.settings import GrpcSettings
from coordinator.service.wire.answer_slices import make_rows, run_steps
from coordinator.service.wire.decode import decode_any_group_id, decode_offset_group_id
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.paging import compute_page, compute_page_token, decode_number
from model.access.acls import Operation
from model.caller import Caller
from model.commands.offset_changes import ListOffsetChanges
from model.commands.offsets import COMMIT_PARTITIONS_MAX, OffsetFetch
from model.commands.resets import DescribeReset, ResetOffsets
from model.errors import NothingToUndo, ResetRefused, UnknownTopicOrPartition
from model.ids import GroupId, TopicName
from model.responses.offset_changes import ListOffsetChangesResponse
from model.responses.offsets import OffsetFetchResponse
from model.responses.resets import OffsetsReset, ResetProgress
from model.topics import TopicImage
from muster.v1 import reset_pb2, reset_pb2_grpc, types_pb2

LATEST: Final = -1
EARLIEST: Final = -2

_Reset: TypeAlias = ResetOffsets
"""The command; the class has a method of that name."""
_Context: TypeAlias = grpc.aio.ServicerContext[
    reset_pb2.ResetOffsetsRequest, reset_pb2.ResetOffsetsResponse
]


class ResetService(reset_pb2_grpc.ResetServiceServicer):
    """Sets offsets. See ``coordinator.service.wire.error_statuses`` for statuses of errors."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._coordinator = services.coordinator
        self._access = services.access
        # Not what is reported: whoever reports an end would move offsets.
        self._ends = None if services.known_ends is None else services.known_ends.truth
        self._request_ids = RequestIds(services.settings.grpc_request_ids_max, services.limits)

    async def ResetOffsets(  # noqa: N802
        self, request: reset_pb2.ResetOffsetsRequest, context: _Context
    ) -> reset_pb2.ResetOffsetsResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_offset_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.READ, group_id)
            if request.WhichOneof("to") == "other_group_id":
                other = decode_offset_group_id(request.other_group_id, self._services.limits)
                self._access.check_group(caller, Operation.DESCRIBE, other)

            async def carry_out() -> reset_pb2.ResetOffsetsResponse:
                return await self._reset(caller, group_id, request)

            return await self._request_ids.once(
                caller.principal, request, reset_pb2.ResetOffsetsResponse, carry_out
            )

    async def GetReset(  # noqa: N802
        self,
        request: reset_pb2.GetResetRequest,
        context: grpc.aio.ServicerContext[reset_pb2.GetResetRequest, reset_pb2.GetResetResponse],
    ) -> reset_pb2.GetResetResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_offset_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.DESCRIBE, group_id)
            found = await self._coordinator.call(DescribeReset(caller, group_id))
            assert isinstance(found, ResetProgress)
            return reset_pb2.GetResetResponse(
                group_epoch=found.group_epoch,
                done=found.is_set,
                waits_for=[
                    reset_pb2.ResetOwner(member_id=member, client_id=client, client_host=host)
                    for member, client, host in found.waits_for
                ],
            )

    async def ListOffsetChanges(  # noqa: N802
        self,
        request: reset_pb2.ListOffsetChangesRequest,
        context: grpc.aio.ServicerContext[
            reset_pb2.ListOffsetChangesRequest, reset_pb2.ListOffsetChangesResponse
        ],
    ) -> reset_pb2.ListOffsetChangesResponse:
        async with Guard(context, group_id=request.group_id):
            group_id = decode_any_group_id(request.group_id, self._services.limits)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.DESCRIBE, group_id)
            settings = self._services.settings
            command = _decode_listing(request, caller, group_id, settings)
            found = await self._coordinator.call(command)
            assert isinstance(found, ListOffsetChangesResponse)
            response = reset_pb2.ListOffsetChangesResponse(
                since_ms=found.since_ms if found.since_ms >= 0 else None
            )
            if found.has_more:
                place = str(found.changes[-1].first)
                response.next_page_token = compute_page_token(place, (request.group_id,))
            rows = make_rows(response.changes.extend, encode_change, found.changes)
            await run_steps(rows)
            return response

    async def _reset(
        self, caller: Caller, group_id: GroupId, request: reset_pb2.ResetOffsetsRequest
    ) -> reset_pb2.ResetOffsetsResponse:
        if request.WhichOneof("to") == "timestamp_ms" and request.timestamp_ms < 0:
            # To ListOffsets these are positions.
            raise InvalidField("timestamp_ms", "timestamp_ms must not be below 0")
        # A topic that is made again meanwhile is none of this request's.
        image = self._coordinator.image
        # Before anything tells which topics there are.
        named = {TopicName(topic.topic_name) for topic in request.topics}
        self._access.check_topics(caller, Operation.READ, named)
        committed = await self._fetch(caller, group_id)
        undone: Undone | None = None
        if request.WhichOneof("to") == "undo":
            undone = await read_undone(self._services, caller, group_id, request.undo, image)
            wanted = undone.wanted
        else:
            wanted = await self._find_wanted(caller, request, image)
        places = self._choose(request, committed, wanted, image)
        if undone is not None and not places:
            raise NothingToUndo(
                f"There is nothing to undo: the change of group {group_id} at log offset "
                f"{undone.change.first} was not about these partitions."
            )
        if not places:
            # Fails if there is no such group, or it has members.
            await self._coordinator.call(ResetOffsets(caller, group_id, (), validate_only=True))
            raise ResetRefused(f"The group {group_id} has no committed offsets: name topics.")
        self._access.check_topics(caller, Operation.READ, {name for name, _ in places})
        before = {place: committed[place] for place in places if place in committed}
        starts = await self._find_offsets(places, EARLIEST)
        ends = await self._find_offsets(places, LATEST)
        if request.WhichOneof("to") == "timestamp_ms":
            wanted = await self._find_offsets(places, request.timestamp_ms)
        plan = compute_plan(request, places, Known(before, starts, ends, wanted))
        command = ResetOffsets(
            caller,
            group_id,
            compute_topic_offsets(plan, image, {} if undone is None else undone.rows),
            before,
            creates=request.create_group or undone is not None,
            undoes=None if undone is None else undone.change.first,
            validate_only=request.validate_only,
        )
        done = await self._submit(command, request.preview, places, image)
        preview = compute_preview(
            group_id, done.revision, before, places, image, is_live=done.is_live
        )
        response = encode_plan(plan, preview, done)
        if undone is not None:
            show_undone(response, undone)
        return response

    async def _submit(
        self, command: _Reset, preview: str, places: Iterable[Place], image: TopicImage
    ) -> OffsetsReset:
        """Set the offsets, begin to, or check that they can be. Raises if the preview is stale."""
        if preview:
            group_id, before = command.group_id, command.before or {}
            revision, now = compute_again(preview, group_id, before, places, image)
            if now != preview:
                raise ResetRefused(
                    f"The offsets of group {group_id} have changed since the preview: look at a "
                    "new preview."
                )
            command = replace(command, revision=revision)
        response = await self._coordinator.call(command)
        assert isinstance(response, OffsetsReset)
        return response

    # ---------------------------------------------------------------------------- partitions

    def _choose(
        self,
        request: reset_pb2.ResetOffsetsRequest,
        committed: Offsets,
        wanted: Offsets,
        image: TopicImage,
    ) -> list[Place]:
        """The partitions that the request is about, each once."""
        has_own = request.WhichOneof("to") in ("plan", "other_group_id", "as_of", "undo")
        if not request.topics:
            places = dict.fromkeys(wanted if has_own else committed)
        else:
            places = _list_places(request.topics, image)
            if has_own:
                places = dict.fromkeys(place for place in places if place in wanted)
        if len(places) > COMMIT_PARTITIONS_MAX:
            raise InvalidField(
                "topics", f"more than {COMMIT_PARTITIONS_MAX} partitions: name fewer at a time"
            )
        return list(places)

    async def _find_wanted(
        self, caller: Caller, request: reset_pb2.ResetOffsetsRequest, image: TopicImage
    ) -> Offsets:
        """The positions that a plan, another group or the group of the past has."""
        match request.WhichOneof("to"):
            case "plan":
                return {
                    (TopicName(topic.topic_name), row.partition): row.offset
                    for topic in request.plan.topics
                    for row in topic.partitions
                }
            case "other_group_id":
                found = await self._fetch(caller, GroupId(request.other_group_id))
                if not found:
                    raise ResetRefused(
                        f"The group {request.other_group_id} has no committed offsets."
                    )
                return found
            case "as_of":
                group_id = GroupId(request.group_id)
                return await self._fetch_past(caller, group_id, request.as_of, image)
            case _:
                return {}

    # ------------------------------------------------------------------------------- offsets

    async def _fetch(self, caller: Caller, group_id: GroupId) -> dict[Place, int]:
        """All committed offsets of a group."""
        response = await self._coordinator.call(OffsetFetch(caller, group_id, None))
        assert isinstance(response, OffsetFetchResponse)
        return find_committed(response.topics)

    async def _fetch_past(
        self, caller: Caller, group_id: GroupId, as_of: types_pb2.AsOf, image: TopicImage
    ) -> Offsets:
        """All that were committed at a past position, of topics that are still there."""
        position = decode_as_of(as_of)
        found = await read_past_offsets(self._services, caller, group_id, position, image)
        if not found:
            raise ResetRefused(
                f"The group {group_id} had no committed offsets then, of topics that are still "
                "there."
            )
        return found

    async def _find_offsets(self, places: Sequence[Place], timestamp_ms: int) -> Offsets:
        if self._ends is None:
            return {}
        return await self._ends.find_offsets_at(places, timestamp_ms)


def _list_places(
    topics: Iterable[types_pb2.TopicPartitions], image: TopicImage
) -> dict[Place, None]:
    """The partitions, each once; not many more than a reset may have, whatever is asked for."""
    places: dict[Place, None] = {}
    whole: set[TopicName] = set()
    for asked in topics:
        name = TopicName(asked.topic_name)
        topic = image.by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"There is no topic {name}.")
        if not asked.partitions and name not in whole:
            whole.add(name)
            places.update(((name, partition), None) for partition in range(topic.partitions))
        for partition in asked.partitions:
            if not 0 <= partition < topic.partitions:
                raise UnknownTopicOrPartition(f"There is no partition {name}-{partition}.")
            places[name, partition] = None
        if len(places) > COMMIT_PARTITIONS_MAX:
            break
    return places


def _decode_listing(
    request: reset_pb2.ListOffsetChangesRequest,
    caller: Caller,
    group_id: GroupId,
    settings: GrpcSettings,
) -> ListOffsetChanges:
    page = compute_page(
        request.page_size,
        request.page_token,
        (request.group_id,),
        settings.grpc_page_size,
        settings.grpc_page_size_max,
    )
    before = None if page.after is None else decode_number(page.after, LOG_OFFSET_MAX)
    return ListOffsetChanges(caller, group_id, before, page.size)
