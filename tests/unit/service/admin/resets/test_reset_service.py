"""ResetService against a real coordinator: previews that are out of date, and who may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import grpc

from model.access.acls import Operation, ResourceType
from model.caller import INTERNAL
from model.commands.topics import DeleteTopic
from model.ids import TopicName
from muster.v1 import group_pb2, reset_pb2, reset_pb2_grpc, types_pb2
from tests.support.authorizers import Rights
from tests.support.service.given_ends import GivenEnds
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.admin.test_admin_service import info, make_groups


def plan(offset: int, partition: int = 0) -> reset_pb2.ResetPlan:
    rows = [types_pb2.PartitionOffset(partition=partition, offset=offset)]
    return reset_pb2.ResetPlan(
        topics=[types_pb2.TopicOffsets(topic_name="orders", partitions=rows)]
    )


async def test_a_preview_holds_until_the_group_changes(stand: Stand) -> None:
    await make_groups(stand)
    stub = reset_pb2_grpc.ResetServiceStub(stand.channel())
    asked = reset_pb2.ResetOffsetsRequest(group_id="loose", plan=plan(9), validate_only=True)
    preview = (await stub.ResetOffsets(asked)).preview
    other = await stub.ResetOffsets(
        reset_pb2.ResetOffsetsRequest(group_id="loose", plan=plan(9), preview=preview)
    )
    assert [(row.offset_before, row.offset_after) for row in other.partitions] == [(1, 9)]
    stale = reset_pb2.ResetOffsetsRequest(group_id="loose", plan=plan(11), preview=preview)
    code, detail = await info(stub.ResetOffsets(stale))
    assert (code, detail.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "POLICY_VIOLATION")
    fetched = await stand.group_stub().FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="loose"))
    assert fetched.topics[0].partitions[0].offset == 9


async def test_offsets_that_are_none_are_refused(stand: Stand) -> None:
    await make_groups(stand)
    stub = reset_pb2_grpc.ResetServiceStub(stand.channel())
    for request, expected in (
        (reset_pb2.ResetOffsetsRequest(group_id="loose"), grpc.StatusCode.INVALID_ARGUMENT),
        (reset_pb2.ResetOffsetsRequest(offset=1), grpc.StatusCode.INVALID_ARGUMENT),
        *(
            (
                reset_pb2.ResetOffsetsRequest(group_id="loose", timestamp_ms=special),
                grpc.StatusCode.INVALID_ARGUMENT,
            )
            for special in (-1, -2, -3)
        ),
        (
            reset_pb2.ResetOffsetsRequest(
                group_id="loose", topics=[types_pb2.TopicPartitions(topic_name="x" * 100_000)]
            ),
            grpc.StatusCode.NOT_FOUND,
        ),
        (
            reset_pb2.ResetOffsetsRequest(group_id="loose", plan=plan(-1)),
            grpc.StatusCode.OUT_OF_RANGE,
        ),
        (
            reset_pb2.ResetOffsetsRequest(group_id="loose", plan=plan(1, 99)),
            grpc.StatusCode.NOT_FOUND,
        ),
        (
            reset_pb2.ResetOffsetsRequest(group_id="loose", plan=plan(1, -1)),
            grpc.StatusCode.NOT_FOUND,
        ),
        (
            reset_pb2.ResetOffsetsRequest(group_id="loose", shift_by=(1 << 63) - 1),
            grpc.StatusCode.OUT_OF_RANGE,
        ),
    ):
        code, _ = await info(stub.ResetOffsets(request))
        assert code is expected, request


async def test_the_right_to_the_other_group_is_needed() -> None:
    rights = Rights()
    async with running_stand(authorizer=rights) as stand:
        await make_groups(stand)
        stub = reset_pb2_grpc.ResetServiceStub(stand.channel())
        rights.denied.add((Operation.DESCRIBE, ResourceType.GROUP, "secret"))
        request = reset_pb2.ResetOffsetsRequest(group_id="loose", other_group_id="secret")
        code, _ = await info(stub.ResetOffsets(request))
        assert code is grpc.StatusCode.PERMISSION_DENIED


async def test_topics_that_the_caller_may_not_read_are_as_topics_that_are_not_there() -> None:
    rights = Rights(is_denied=lambda asked: asked.resource_type is ResourceType.TOPIC)
    async with running_stand(authorizer=rights) as stand:
        await make_groups(stand)
        stub = reset_pb2_grpc.ResetServiceStub(stand.channel())
        for name, partition in (("orders", 0), ("orders", 99), ("none", 0)):
            topics = [types_pb2.TopicPartitions(topic_name=name, partitions=[partition])]
            asked = reset_pb2.ResetOffsetsRequest(group_id="loose", topics=topics, offset=1)
            code, detail = await info(stub.ResetOffsets(asked))
            assert code is grpc.StatusCode.PERMISSION_DENIED, (name, partition)
            assert detail.reason == "TOPIC_AUTHORIZATION_FAILED"


async def test_a_topic_is_looked_at_once_however_often_it_is_named(stand: Stand) -> None:
    await stand.create_topic("large", 10_000)
    await make_groups(stand)
    stub = reset_pb2_grpc.ResetServiceStub(stand.channel())
    topics = [types_pb2.TopicPartitions(topic_name="large")] * 20_000
    asked = reset_pb2.ResetOffsetsRequest(
        group_id="loose", topics=topics, offset=1, validate_only=True
    )
    assert len((await stub.ResetOffsets(asked, timeout=20)).partitions) == 10_000
    asked.topics.add(topic_name="orders")
    code, _ = await info(stub.ResetOffsets(asked, timeout=20))
    assert code is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_preview_is_of_its_group_partitions_and_topics(stand: Stand) -> None:
    await stand.create_topic("others", 1)
    await make_groups(stand)
    stub = reset_pb2_grpc.ResetServiceStub(stand.channel())

    def ask(group: str, topic: str, **more: Any) -> Any:
        topics = [types_pb2.TopicPartitions(topic_name=topic)]
        asked = reset_pb2.ResetOffsetsRequest(group_id=group, topics=topics, offset=1, **more)
        return stub.ResetOffsets(asked)

    preview = (await ask("loose", "others", validate_only=True)).preview
    await ask("loose", "others", preview=preview, validate_only=True)
    await ask("idle", "others", create_group=True)
    for group, topic in (("idle", "others"), ("loose", "orders")):
        code, _ = await info(ask(group, topic, preview=preview))
        assert code is grpc.StatusCode.FAILED_PRECONDITION
    image = stand.runtime.image
    await stand.runtime.call(DeleteTopic(INTERNAL, TopicName("others")))
    await stand.create_topic("others", 1)
    assert stand.runtime.image is not image
    code, detail = await info(ask("loose", "others", preview=preview))
    assert (code, detail.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "POLICY_VIOLATION")


class MadeAgain(GivenEnds):
    """While it looks for offsets somebody makes the topic again."""

    stand: Stand | None = None

    async def find_offsets_at(
        self, partitions: Sequence[tuple[TopicName, int]], timestamp_ms: int
    ) -> Mapping[tuple[TopicName, int], int]:
        if self.stand is not None:
            await self.stand.runtime.call(DeleteTopic(INTERNAL, TopicName("orders")))
            await self.stand.create_topic("orders", 1)
            self.stand = None
        return await super().find_offsets_at(partitions, timestamp_ms)


async def test_a_topic_that_is_made_again_meanwhile_is_not_reset() -> None:
    ends = MadeAgain(orders={0: 1_000})
    async with running_stand(end_offsets=ends) as stand:
        await make_groups(stand)
        stub = reset_pb2_grpc.ResetServiceStub(stand.channel())
        ends.stand = stand
        topics = [types_pb2.TopicPartitions(topic_name="orders", partitions=[0])]
        latest = reset_pb2.RESET_POSITION_LATEST
        asked = reset_pb2.ResetOffsetsRequest(group_id="new", topics=topics, position=latest)
        asked.create_group = True
        code, detail = await info(stub.ResetOffsets(asked))
        assert code is grpc.StatusCode.NOT_FOUND
        assert detail.reason == "UNKNOWN_TOPIC_OR_PARTITION"
