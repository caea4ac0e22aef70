"""FetchOffsets with the ends of partitions, for the lag."""

from __future__ import annotations

from typing import Any

from model.access.acls import Operation, ResourceType
from muster.v1 import group_pb2, types_pb2
from tests.support.authorizers import Rights
from tests.support.service.given_ends import GivenEnds
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.session.test_group_service import offsets


async def fetch(stand: Stand, **fields: Any) -> dict[tuple[str, int], int | None]:
    defaults: dict[str, Any] = {"group_id": "g", "with_end_offsets": True}
    request = group_pb2.FetchOffsetsRequest(**(defaults | fields))
    response = await stand.group_stub().FetchOffsets(request)
    assert not response.HasField("error")
    return {
        (topic.topic_name, row.partition): row.end_offset if row.HasField("end_offset") else None
        for topic in response.topics
        for row in topic.partitions
    }


async def commit(stand: Stand, *topics: types_pb2.TopicOffsets) -> None:
    request = group_pb2.CommitOffsetsRequest(group_id="g", topics=topics)
    assert not (await stand.group_stub().CommitOffsets(request)).failures


def named(**topics: list[int]) -> types_pb2.PartitionSet:
    return types_pb2.PartitionSet(
        topics=[
            types_pb2.TopicPartitions(topic_name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    )


async def test_ends_are_shown_where_they_are_known_and_asked_for() -> None:
    ends = GivenEnds(orders={0: 10, 1: 0, 3: 5})
    async with running_stand(end_offsets=ends) as stand:
        await commit(stand, *offsets(p0=7, p1=0, p2=9))
        assert await fetch(stand) == {("orders", 0): 10, ("orders", 1): 0, ("orders", 2): None}
        # Also where nothing was committed.
        assert await fetch(stand, partitions=named(orders=[3, 3])) == {("orders", 3): 5}
        ends.asked.clear()
        assert set((await fetch(stand, with_end_offsets=False)).values()) == {None}
        assert ends.asked == []


async def test_lag_is_known_in_time_once_the_end_was_seen_before() -> None:
    ends = GivenEnds(orders={0: 10, 1: 10})
    async with running_stand(end_offsets=ends) as stand:
        await commit(stand, *offsets(p0=10, p1=7))
        request = group_pb2.FetchOffsetsRequest(group_id="g", with_end_offsets=True)

        async def look() -> list[int | None]:
            (topic,) = (await stand.group_stub().FetchOffsets(request)).topics
            return [row.lag_ms if row.HasField("lag_ms") else None for row in topic.partitions]

        assert await look() == [0, None]
        ends.ends["orders"] = {0: 12, 1: 12}
        known, unknown = await look()
        assert known is not None
        assert 0 <= known < 60_000
        assert unknown is None


async def test_without_records_no_end_is_known(stand: Stand) -> None:
    await commit(stand, *offsets(p0=7))
    assert await fetch(stand) == {("orders", 0): None}


async def test_ends_of_topics_that_may_not_be_seen_are_not_shown() -> None:
    rights = Rights()
    ends = GivenEnds(orders={0: 10}, hidden={0: 99})
    async with running_stand(authorizer=rights, end_offsets=ends) as stand:
        topic_id = await stand.create_topic("hidden", 1)
        await commit(stand, *offsets(p0=1), *offsets("hidden", p0=1))
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "hidden"))
        assert await fetch(stand) == {("orders", 0): 10}
        asked = await fetch(stand, partitions=named(orders=[0], hidden=[0]))
        assert asked == {("orders", 0): 10, ("hidden", 0): None}
        by_id = types_pb2.PartitionSet(
            topics=[types_pb2.TopicPartitions(topic_id=topic_id, partitions=[0])]
        )
        assert set((await fetch(stand, partitions=by_id)).values()) == {None}
        assert "hidden" not in {name for name, _ in ends.asked}
