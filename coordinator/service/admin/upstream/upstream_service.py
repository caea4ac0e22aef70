"""``muster.v1.UpstreamService``: the cluster that the server stands in front of, and its groups."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Final, TypeAlias, TypeVar

import grpc.aio

from coordinator.core.subscriptions.regex_matching import compute_matches
from coordinator.runtime.audit import NO_AUDIT, Audit, Change
from coordinator.service.admin.upstream.upstream_administration import (
    GroupMove,
    UpstreamAdministration,
)
from coordinator.service.admin.upstream.upstream_messages import (
    check_pattern,
    decode_group_ids,
    decode_places,
    encode_description,
    encode_failure,
    encode_group,
    encode_move,
)
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.services import Services
from coordinator.service.wire.answer_slices import SLICE
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.paging import compute_page, compute_page_token, compute_slice
from model.access.acls import Operation, ResourceType
from model.caller import Caller
from model.errors import GroupError, PolicyViolation
from model.ids import GroupId, TopicName
from model.places import Place
from muster.v1 import upstream_pb2, upstream_pb2_grpc

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]
_Move: TypeAlias = Callable[[GroupId], Awaitable[GroupMove]]
_MoveRequest: TypeAlias = upstream_pb2.TakeGroupsRequest | upstream_pb2.ReleaseGroupsRequest

MOVED_AT_ONCE: Final = 16
"""How many groups of a call are on the way at a time: each takes as long as its members take."""
_NO_UPSTREAM: Final = (
    "this server stands in front of no cluster: start it with upstream.bootstrap.servers"
)


class UpstreamService(upstream_pb2_grpc.UpstreamServiceServicer):
    """Moves groups. See ``coordinator.service.wire.error_statuses`` for the statuses of errors."""

    def __init__(
        self,
        services: Services,
        upstream: UpstreamAdministration | None = None,
        audit: Audit = NO_AUDIT,
    ) -> None:
        self._services = services
        self._access = services.access
        self._upstream = upstream
        self._audit = audit
        self._moving: set[asyncio.Task[upstream_pb2.GroupReport]] = set()

    # ------------------------------------------------------------------------------- reading

    async def GetUpstream(  # noqa: N802
        self,
        request: upstream_pb2.GetUpstreamRequest,
        context: _Context[upstream_pb2.GetUpstreamRequest, upstream_pb2.GetUpstreamResponse],
    ) -> upstream_pb2.GetUpstreamResponse:
        async with Guard(context):
            self._access.check_cluster_caller(context.peer(), Operation.DESCRIBE)
            return encode_description(await self._find_upstream().describe())

    async def ListUpstreamGroups(  # noqa: N802
        self,
        request: upstream_pb2.ListUpstreamGroupsRequest,
        context: _Context[
            upstream_pb2.ListUpstreamGroupsRequest, upstream_pb2.ListUpstreamGroupsResponse
        ],
    ) -> upstream_pb2.ListUpstreamGroupsResponse:
        async with Guard(context):
            self._access.check_cluster_caller(context.peer(), Operation.DESCRIBE)
            upstream = self._find_upstream()
            places = decode_places(request.places)
            filters = sorted(place.value for place in places)
            settings = self._services.settings
            page = compute_page(
                request.page_size,
                request.page_token,
                filters,
                settings.grpc_page_size,
                settings.grpc_page_size_max,
            )
            group_ids = await upstream.list_group_ids(whole=False)
            if places:
                placed, rest = upstream.find_places(), Place.UPSTREAM
                group_ids = [each for each in group_ids if placed.get(each, rest) in places]
            shown, more = compute_slice(group_ids, page)
            listed = await upstream.describe_groups(group_ids[shown])
            token = compute_page_token(listed[-1].group_id, filters) if more and listed else ""
            return upstream_pb2.ListUpstreamGroupsResponse(
                groups=map(encode_group, listed), next_page_token=token
            )

    # -------------------------------------------------------------------------------- moving

    async def TakeGroups(  # noqa: N802
        self,
        request: upstream_pb2.TakeGroupsRequest,
        context: _Context[upstream_pb2.TakeGroupsRequest, upstream_pb2.GroupReport],
    ) -> None:
        async with Guard(context):
            caller, group_ids = self._check_move(context.peer(), request, bool(request.pattern))
            upstream = self._find_upstream()
            if request.pattern:
                check_pattern(request.pattern)
                group_ids = await _find_matches(upstream, request.pattern)

            async def take(group_id: GroupId) -> GroupMove:
                return await upstream.take(group_id, dry_run=request.dry_run)

            await self._move_all("TakeGroup", caller, group_ids, take, request.dry_run, context)

    async def ReleaseGroups(  # noqa: N802
        self,
        request: upstream_pb2.ReleaseGroupsRequest,
        context: _Context[upstream_pb2.ReleaseGroupsRequest, upstream_pb2.GroupReport],
    ) -> None:
        async with Guard(context):
            caller, group_ids = self._check_move(context.peer(), request, request.all)
            upstream = self._find_upstream()
            if request.all:
                group_ids = sorted(upstream.find_places())

            async def release(group_id: GroupId) -> GroupMove:
                return await upstream.release(group_id, dry_run=request.dry_run)

            dry_run = request.dry_run
            await self._move_all("ReleaseGroup", caller, group_ids, release, dry_run, context)

    def _check_move(
        self, peer: str, request: _MoveRequest, means_all: bool
    ) -> tuple[Caller, Sequence[GroupId]]:
        """The caller, who may move what is asked for, and the groups named."""
        caller = compute_caller(peer, "")
        if means_all:
            self._access.check_cluster(caller, Operation.ALTER)
        if bool(request.group_ids) == means_all:
            raise InvalidField("group_ids", "name groups, or ask for all that match: one of both")
        group_ids = decode_group_ids(request.group_ids, self._services.limits)
        for group_id in group_ids:
            self._access.check_group(caller, Operation.ALTER_CONFIGS, group_id)
        return caller, group_ids

    def _find_upstream(self) -> UpstreamAdministration:
        if self._upstream is None:
            raise PolicyViolation(_NO_UPSTREAM)
        return self._upstream

    async def _move_all(
        self,
        kind: str,
        caller: Caller,
        group_ids: Sequence[GroupId],
        move: _Move,
        dry_run: bool,
        context: _Context[_Request, upstream_pb2.GroupReport],
    ) -> None:
        """Move some groups at a time, and report each as soon as it has been moved."""
        left = iter(group_ids)
        waiting: set[asyncio.Task[upstream_pb2.GroupReport]] = set()
        while True:
            for group_id in islice(left, MOVED_AT_ONCE - len(waiting)):
                moving = self._move(kind, caller, group_id, move, dry_run, len(group_ids))
                # A task of its own: what has begun ends, and is noted, even if the client goes.
                task = asyncio.create_task(moving)
                waiting.add(task)
                self._moving.add(task)
                task.add_done_callback(self._moving.discard)
            if not waiting:
                return
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await context.write(task.result())

    async def _move(
        self,
        kind: str,
        caller: Caller,
        group_id: GroupId,
        move: _Move,
        dry_run: bool,
        groups: int,
    ) -> upstream_pb2.GroupReport:
        try:
            moved = await move(group_id)
        except GroupError as error:
            return encode_failure(group_id, error, groups)
        after = moved.group.place
        if not dry_run and after is not moved.before:
            self._audit.changed(caller, _compute_change(kind, group_id, moved.before, after))
        return encode_move(moved, groups)


async def _find_matches(upstream: UpstreamAdministration, pattern: str) -> Sequence[GroupId]:
    """The groups of the cluster that a pattern matches, sorted."""
    found: list[GroupId] = []
    for names in _cut(await upstream.list_group_ids(whole=True)):
        found += sorted(map(GroupId, compute_matches(pattern, map(TopicName, names))))
        await asyncio.sleep(0)
    return found


def _cut(group_ids: Sequence[GroupId]) -> Iterable[Sequence[GroupId]]:
    for start in range(0, len(group_ids), SLICE):
        yield group_ids[start : start + SLICE]


def _compute_change(kind: str, group_id: GroupId, before: Place, after: Place) -> Change:
    return Change(
        kind,
        Operation.ALTER_CONFIGS,
        ResourceType.GROUP,
        group_id,
        {"place": before.value},
        {"place": after.value},
    )
