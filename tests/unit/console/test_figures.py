"""Figures of groups on somebody's page: asked for once, and not again too soon."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import grpc

from console.listing.figures import FRESH_MS, GROUPS_MAX, GroupFigures
from console.listing.kept_pages import KeptPages, Made
from coordinator.service.calls.local_calls import CallRefused
from muster.v1 import explain_pb2, group_pb2, types_pb2


class Server:
    """Answers what figures ask for; ``refuses`` with a status and a reason."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.asked: Counter[str] = Counter()
        self.lag = 5
        self.refuses: CallRefused | None = None
        self.error = ""
        self.held = asyncio.Event()
        self.held.set()

    async def ask(self, service: str, method: str, request: Any) -> Any:
        self.asked[request.group_id] += 1
        await self.held.wait()
        if self.refuses is not None:
            raise self.refuses
        if method == "ExplainGroup":
            return explain_pb2.ExplainGroupResponse()
        answer = group_pb2.FetchOffsetsResponse()
        if self.error:
            answer.error.CopyFrom(types_pb2.Error(error_code=1, reason=self.error))
            return answer
        row = types_pb2.CommittedOffset(partition=0, offset=10, end_offset=10 + self.lag)
        answer.topics.append(types_pb2.CommittedTopic(topic_name="t", partitions=[row]))
        return answer

    def clock(self) -> int:
        return self.now_ms


async def test_figures_are_asked_for_once_until_they_are_old() -> None:
    server = Server()
    figures = GroupFigures(server.ask, server.clock)
    for _ in range(3):
        found = await figures.look({"g": 1}, 10)
    assert found["g"].figures is not None
    assert found["g"].figures.lag.records == 5
    assert server.asked["g"] == 2
    server.now_ms += FRESH_MS
    server.lag = 7
    found = await figures.look({"g": 2}, 10)
    assert list(found["g"].lags) == [(0, 5), (FRESH_MS, 7)]
    assert list(found["g"].members) == [(0, 1), (FRESH_MS, 2)]


async def test_a_page_does_not_wait_for_what_takes_long() -> None:
    server = Server()
    server.held.clear()
    figures = GroupFigures(server.ask, server.clock)
    found = await figures.look({"g": 1}, 0.01)
    assert found["g"].figures is None
    server.held.set()
    found = await figures.look({"g": 1}, 10)
    assert found["g"].figures is not None
    assert server.asked["g"] == 2, "what was begun went on"


async def test_what_cannot_be_had_now_is_not_taken_for_nothing() -> None:
    server = Server()
    figures = GroupFigures(server.ask, server.clock)
    server.refuses = CallRefused(grpc.StatusCode.RESOURCE_EXHAUSTED, "over the quota")
    assert (await figures.look({"g": 1}, 10))["g"].figures is None
    server.refuses, server.error = None, "COORDINATOR_LOAD_IN_PROGRESS"
    assert (await figures.look({"g": 1}, 10))["g"].figures is None
    server.error = "GROUP_AUTHORIZATION_FAILED"
    hidden = (await figures.look({"g": 1}, 10))["g"].figures
    assert hidden is not None
    assert hidden.lag.records is None


async def test_the_groups_that_are_remembered_are_bounded() -> None:
    server = Server()
    figures = GroupFigures(server.ask, server.clock)
    await figures.look({str(number): 0 for number in range(GROUPS_MAX)}, 60)
    await figures.look({"more": 0}, 10)
    server.asked.clear()
    await figures.look({"1": 0}, 10)
    await figures.look({"0": 0}, 10)
    assert (server.asked["0"], server.asked["1"]) == (2, 0), "the first was forgotten"


async def test_a_page_is_made_once_for_all_who_ask_and_kept_by_its_cost() -> None:
    server, made = Server(), 0
    pages = KeptPages(server.clock)

    async def make() -> Made:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        return Made(f"page {made}", 10, is_whole=True)

    assert await asyncio.gather(*(pages.find("key", make) for _ in range(5))) == ["page 1"] * 5
    server.now_ms = 499
    assert await pages.find("key", make) == "page 1"
    assert await pages.find("other", make) == "page 2"
    server.now_ms = 500
    assert await pages.find("key", make) == "page 3"
