"""Repeated requests with one id."""

from __future__ import annotations

import asyncio

import pytest

from coordinator.service.calls.request_ids import RequestIds
from coordinator.service.settings import GrpcSettings
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.limits import compute_limits
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import TopicAlreadyExists
from muster.v1 import admin_pb2


class Effects:
    """Counts how often something happened."""

    def __init__(self, error: Exception | None = None) -> None:
        self.count = 0
        self.error = error
        self.go = asyncio.Event()

    async def carry_out(self) -> admin_pb2.CreateTopicResponse:
        self.count += 1
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return admin_pb2.CreateTopicResponse(topic=admin_pb2.Topic(num_partitions=self.count))


REQUEST = admin_pb2.CreateTopicRequest(topic_name="t", num_partitions=1, request_id="r")
ANSWER = admin_pb2.CreateTopicResponse
LIMITS = compute_limits(CoordinatorSettings(), GrpcSettings())


async def test_a_repeated_id_has_one_effect_and_one_answer() -> None:
    ids, effects = RequestIds(10, LIMITS), Effects()
    first = asyncio.create_task(ids.once("User:a", REQUEST, ANSWER, effects.carry_out))
    second = asyncio.create_task(ids.once("User:a", REQUEST, ANSWER, effects.carry_out))
    await asyncio.sleep(0)
    effects.go.set()
    assert (
        await first == await second == await ids.once("User:a", REQUEST, ANSWER, effects.carry_out)
    )
    assert effects.count == 1


async def test_without_an_id_every_request_has_its_effect() -> None:
    ids, effects = RequestIds(10, LIMITS), Effects()
    effects.go.set()
    without = admin_pb2.CreateTopicRequest(topic_name="t", num_partitions=1)
    await ids.once("User:a", without, ANSWER, effects.carry_out)
    await ids.once("User:a", without, ANSWER, effects.carry_out)
    assert effects.count == 2


async def test_an_id_is_for_one_request_only() -> None:
    ids, effects = RequestIds(10, LIMITS), Effects()
    effects.go.set()
    await ids.once("User:a", REQUEST, ANSWER, effects.carry_out)
    other = admin_pb2.CreateTopicRequest(topic_name="t", num_partitions=2, request_id="r")
    grow = admin_pb2.GrowTopicRequest(topic_name="t", num_partitions=1, request_id="r")
    for request in (other, grow):
        with pytest.raises(InvalidField, match="another request"):
            await ids.once("User:a", request, ANSWER, effects.carry_out)


async def test_a_failed_request_may_be_tried_again() -> None:
    ids, effects = RequestIds(10, LIMITS), Effects(TopicAlreadyExists("x"))
    effects.go.set()
    for _ in range(2):
        with pytest.raises(TopicAlreadyExists):
            await ids.once("User:a", REQUEST, ANSWER, effects.carry_out)
        await asyncio.sleep(0)
    assert effects.count == 2


async def test_a_client_that_goes_away_does_not_undo_the_effect() -> None:
    ids, effects = RequestIds(10, LIMITS), Effects()
    first = asyncio.create_task(ids.once("User:a", REQUEST, ANSWER, effects.carry_out))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    effects.go.set()
    await ids.once("User:a", REQUEST, ANSWER, effects.carry_out)
    assert effects.count == 1


async def test_only_so_many_are_remembered() -> None:
    ids, effects = RequestIds(2, LIMITS), Effects()
    effects.go.set()
    for name in ("a", "b", "c", "a"):
        request = admin_pb2.CreateTopicRequest(topic_name="t", num_partitions=1, request_id=name)
        await ids.once("User:a", request, ANSWER, effects.carry_out)
    assert effects.count == 4


async def test_an_id_is_its_principals_own() -> None:
    """Another principal may use the same id and does not get the first one's response."""
    ids, effects = RequestIds(10, LIMITS), Effects()
    effects.go.set()
    mine = await ids.once("User:a", REQUEST, ANSWER, effects.carry_out)
    theirs = await ids.once("User:b", REQUEST, ANSWER, effects.carry_out)
    assert (mine.topic.num_partitions, theirs.topic.num_partitions) == (1, 2)
    grow = admin_pb2.GrowTopicRequest(topic_name="u", num_partitions=9, request_id="r")
    assert await ids.once("User:c", grow, ANSWER, effects.carry_out)
