"""The questions that the page of a group asks, of the present and of a past position."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import chain
from typing import Final, Protocol

import grpc
from google.protobuf.message import Message

from console.live.group_sections import Answers, Timeline
from console.views.partitions_view import (
    OwnerFinder,
    Place,
    Rows,
    cut_page,
    find_committed,
    sort_places,
)
from coordinator.service.calls.local_calls import CallRefused
from coordinator.service.wire.answer_slices import run_steps
from muster.v1 import admin_pb2, explain_pb2, group_pb2, reset_pb2, types_pb2

REBALANCES: Final = 20
"""So many rebalances are listed on a page."""
CHANGES: Final = 100
"""The last so many changes of offsets are listed beside them."""
CHANGES_MAX: Final = 1_000
"""So many changes of a group are kept."""


class Ask(Protocol):
    """Asks a service of gRPC for somebody. Raises ``CallRefused``."""

    async def __call__(self, service: str, method: str, request: Message, /) -> Message: ...


async def ask_group(ask: Ask, group_id: str) -> admin_pb2.Group:
    """The group as it is. Raises ``CallRefused``."""
    request = admin_pb2.DescribeGroupRequest(group_id=group_id)
    answer = await ask("AdminService", "DescribeGroup", request)
    assert isinstance(answer, admin_pb2.DescribeGroupResponse)
    return answer.group


async def ask_committed(
    ask: Ask, group: admin_pb2.Group, finder: OwnerFinder, page: int = 1
) -> Rows:
    """Committed and end offsets, also of what is on the page and a member owns without a commit.

    Nothing where the offsets are not the visitor's to see.
    """
    rows = await _fetch(ask, group.group_id, None)
    owners = await run_steps(finder.find(group.members))
    places = await run_steps(sort_places(chain(owners, rows)))
    missing = [place for place in cut_page(places, page) if place not in rows]
    if missing:
        rows |= await _fetch(ask, group.group_id, missing)
    return rows


async def _fetch(ask: Ask, group_id: str, places: Sequence[Place] | None) -> Rows:
    request = group_pb2.FetchOffsetsRequest(group_id=group_id, with_end_offsets=True)
    if places is not None:
        topics: dict[str, list[int]] = {}
        for name, partition in places:
            topics.setdefault(name, []).append(partition)
        request.partitions.topics.extend(
            types_pb2.TopicPartitions(topic_name=name, partitions=numbers)
            for name, numbers in topics.items()
        )
    answer = await ask("GroupService", "FetchOffsets", request)
    assert isinstance(answer, group_pb2.FetchOffsetsResponse)
    return find_committed(answer.topics)


async def ask_rebalances(
    ask: Ask, group_id: str, until_ms: int = 0, page_token: str = ""
) -> explain_pb2.ExplainGroupResponse:
    """The last rebalances that began before a time, and whether there are more."""
    request = explain_pb2.ExplainGroupRequest(
        group_id=group_id, until_ms=until_ms, page_size=REBALANCES, page_token=page_token
    )
    answer = await ask("ExplainService", "ExplainGroup", request)
    assert isinstance(answer, explain_pb2.ExplainGroupResponse)
    return answer


async def ask_changes(
    ask: Ask, group_id: str, *, since_ms: int = 0, until_ms: int = 0, limit: int = CHANGES_MAX
) -> tuple[list[reset_pb2.OffsetChange], bool]:
    """The last changes of offsets of a time, and whether there are more; 0 for no bound."""
    # What is not before ``until_ms`` is not asked for, but told.
    page_size = CHANGES_MAX if until_ms else limit
    request = reset_pb2.ListOffsetChangesRequest(group_id=group_id, page_size=page_size)
    found: list[reset_pb2.OffsetChange] = []
    while True:
        answer = await ask("ResetService", "ListOffsetChanges", request)
        assert isinstance(answer, reset_pb2.ListOffsetChangesResponse)
        for change in answer.changes:
            if change.changed_ms < since_ms:
                return found, False
            if until_ms and change.changed_ms >= until_ms:
                continue
            if len(found) >= limit:
                return found, True
            found.append(change)
        request.page_token = answer.next_page_token
        if not request.page_token or len(found) >= limit:
            return found, bool(request.page_token)


async def ask_timeline(ask: Ask, group_id: str, until_ms: int = 0) -> Timeline:
    """What began last before a time; all of it since some moment. Raises ``CallRefused``."""
    changes, has_more = await ask_changes(ask, group_id, until_ms=until_ms, limit=CHANGES)
    since_ms = changes[-1].changed_ms if has_more else 0
    rebalances: Sequence[explain_pb2.Rebalance] = ()
    try:
        told = await ask_rebalances(ask, group_id, until_ms)
    except CallRefused as error:
        # Of a group that is gone, and of one that was imported, there may be changes alone.
        if error.status is not grpc.StatusCode.NOT_FOUND or not changes:
            raise
    else:
        rebalances = told.rebalances
        if told.next_page_token:
            since_ms = max(since_ms, rebalances[-1].began_ms)
    return Timeline(
        [each for each in rebalances if each.began_ms >= since_ms],
        [each for each in changes if each.changed_ms >= since_ms],
        since_ms,
    )


async def ask_present(ask: Ask, group_id: str, finder: OwnerFinder, page: int = 1) -> Answers:
    """All that is shown of the present. Raises ``CallRefused``."""
    group = await ask_group(ask, group_id)
    at_ms = read_wall_ms()
    committed = await ask_committed(ask, group, finder, page)
    timeline = await ask_timeline(ask, group_id)
    return Answers(group, committed, timeline, at_ms, page)


async def ask_past(
    ask: Ask, group_id: str, as_of: types_pb2.AsOf, page: int = 1
) -> tuple[Answers, types_pb2.LogPosition]:
    """What was at a past position, and where that is. Raises ``CallRefused``."""
    described, fetched = await asyncio.gather(
        ask("AdminService", "DescribeGroup", _describe_at(group_id, as_of)),
        ask("GroupService", "FetchOffsets", _fetch_at(group_id, as_of)),
    )
    assert isinstance(described, admin_pb2.DescribeGroupResponse)
    assert isinstance(fetched, group_pb2.FetchOffsetsResponse)
    position = described.position
    until_ms = max(position.timestamp_ms, as_of.timestamp_ms) + 1
    try:
        timeline = await ask_timeline(ask, group_id, until_ms)
    except CallRefused:
        # The ledger may have less than the log, as after an import.
        timeline = Timeline()
    committed = find_committed(fetched.topics)
    return Answers(described.group, committed, timeline, until_ms, page), position


def _describe_at(group_id: str, as_of: types_pb2.AsOf) -> admin_pb2.DescribeGroupRequest:
    return admin_pb2.DescribeGroupRequest(group_id=group_id, as_of=as_of)


def _fetch_at(group_id: str, as_of: types_pb2.AsOf) -> group_pb2.FetchOffsetsRequest:
    return group_pb2.FetchOffsetsRequest(group_id=group_id, as_of=as_of)


def read_wall_ms() -> int:
    return time.time_ns() // 1_000_000
