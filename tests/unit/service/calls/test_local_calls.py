"""Calls from within the process are held to what gRPC's clients are held to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from coordinator.service.calls.grpc_caller import CALLING
from coordinator.service.calls.handlers import CallsInFlight
from coordinator.service.calls.local_calls import WRITTEN_MAX, CallRefused, LocalCalls, Visitor
from coordinator.service.calls.throttle import Throttle
from muster.v1 import admin_pb2, upstream_pb2
from security.identity import NOBODY, Identity
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand, running_stand

VISITOR = Visitor(NOBODY, "ipv4:127.0.0.1:50412")
UPSTREAM = upstream_pb2.DESCRIPTOR.services_by_name["UpstreamService"]


async def list_topics(stand: Stand, visitor: Visitor = VISITOR) -> list[str]:
    answer = await stand.server.local_calls.call(
        "AdminService", "ListTopics", admin_pb2.ListTopicsRequest(), visitor
    )
    return [topic.topic_name for topic in answer.topics]


async def test_a_call_is_answered_as_over_grpc(stand: Stand) -> None:
    assert await list_topics(stand) == ["orders"]


async def test_an_error_has_the_status_and_the_reason_of_grpc(stand: Stand) -> None:
    request = admin_pb2.DescribeGroupRequest(group_id="none")
    with pytest.raises(CallRefused) as raised:
        await stand.server.local_calls.call("AdminService", "DescribeGroup", request, VISITOR)
    refused = raised.value
    assert refused.status is grpc.StatusCode.NOT_FOUND
    assert refused.reason == "GROUP_ID_NOT_FOUND"
    assert refused.about["group_id"] == "none"
    assert "none" in refused.message


async def test_the_caller_is_the_visitor_and_only_for_the_call(stand: Stand) -> None:
    before = CALLING.get()
    await list_topics(stand, Visitor(Identity("User:alice"), VISITOR.peer))
    assert CALLING.get() is before


async def test_a_server_that_stops_refuses(stand: Stand) -> None:
    stand.server.local_calls.stop()
    with pytest.raises(CallRefused) as raised:
        await list_topics(stand)
    assert raised.value.status is grpc.StatusCode.UNAVAILABLE


def _make_report(number: int) -> upstream_pb2.GroupReport:
    return upstream_pb2.GroupReport(group=upstream_pb2.UpstreamGroup(group_id=str(number)))


class Reports:
    """Stands for a servicer with a stream of responses."""

    def __init__(self, count: int, *, fails: bool = False) -> None:
        self.count = count
        self.fails = fails
        self.written = 0
        self.ended = False

    async def TakeGroups(self, request: object, context: Any) -> None:
        try:
            for number in range(self.count):
                await context.write(_make_report(number))
                self.written = number + 1
            if self.fails:
                await context.abort(grpc.StatusCode.ABORTED, "that is enough")
        finally:
            self.ended = True


def make_calls(stand: Stand, reports: Reports) -> LocalCalls:
    return LocalCalls(
        {"UpstreamService": (UPSTREAM, reports)}, Throttle(stand.runtime), CallsInFlight()
    )


async def take(stand: Stand, reports: Reports) -> AsyncIterator[upstream_pb2.GroupReport]:
    stream: AsyncIterator[upstream_pb2.GroupReport] = await make_calls(stand, reports).call(
        "UpstreamService", "TakeGroups", upstream_pb2.TakeGroupsRequest(), VISITOR
    )
    return stream


@pytest.mark.parametrize("count", [0, 1, WRITTEN_MAX, 5 * WRITTEN_MAX])
async def test_a_stream_brings_all_in_order(stand: Stand, count: int) -> None:
    reports = [report.group.group_id async for report in await take(stand, Reports(count))]
    assert reports == [str(number) for number in range(count)]


async def test_a_stream_that_nobody_reads_waits(stand: Stand) -> None:
    reports = Reports(1_000)
    stream = await take(stand, reports)
    first = await anext(stream)
    for _ in range(100):
        await asyncio.sleep(0)
    assert first.group.group_id == "0"
    assert reports.written <= WRITTEN_MAX + 2
    await stream.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
    assert reports.ended


async def test_a_stream_that_is_closed_before_it_is_read_has_not_begun(stand: Stand) -> None:
    """Closing it does not run what nobody has started, and would end nothing that was."""
    reports = Reports(1_000)
    stream = await take(stand, reports)
    await stream.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
    for _ in range(100):
        await asyncio.sleep(0)
    assert reports.written == 0


async def test_a_stream_that_fails_brings_what_came_before(stand: Stand) -> None:
    stream = await take(stand, Reports(3, fails=True))
    seen = [(await anext(stream)).group.group_id for _ in range(3)]
    assert seen == ["0", "1", "2"]
    with pytest.raises(CallRefused, match="that is enough"):
        await anext(stream)


async def test_rights_are_those_of_the_visitor() -> None:
    rights = Rights(is_denied=lambda asked: asked.principal == "User:eve")
    async with running_stand(authorizer=rights) as stand:
        assert await list_topics(stand, Visitor(Identity("User:eve"), VISITOR.peer)) == []
        assert await list_topics(stand, Visitor(Identity("User:alice"), VISITOR.peer)) == ["orders"]
        assert rights.asked[-1].host == "/127.0.0.1"
