"""ReportEndOffsets: who may, what is taken, and what lag is shown of it."""

from __future__ import annotations

from typing import Any

import grpc.aio
import pytest

from coordinator.service.settings import GrpcSettings
from coordinator.service.wire.end_report_messages import PARTITIONS_MAX
from model.access.acls import Operation, ResourceType
from model.caller import INTERNAL
from model.commands.topics import DeleteTopic
from model.ids import TopicName
from muster.v1 import group_pb2, reset_pb2, reset_pb2_grpc
from tests.support.authorizers import Rights
from tests.support.service.fake_upstream import FakeUpstream
from tests.support.service.given_ends import GivenEnds
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.calls.test_throttle import quotas_of, refusal_of
from tests.unit.service.session.test_end_offsets import commit, fetch
from tests.unit.service.session.test_group_service import offsets


def topic(name: str = "orders", /, topic_id: bytes = b"", **ends: int) -> group_pb2.TopicEndOffsets:
    """``p0=5``: partition 0 ends at 5."""
    return group_pb2.TopicEndOffsets(
        topic_name=name,
        topic_id=topic_id,
        partitions=[
            group_pb2.PartitionEndOffset(partition=int(place[1:]), end_offset=end)
            for place, end in ends.items()
        ],
    )


async def report(
    stand: Stand, *topics: group_pb2.TopicEndOffsets
) -> group_pb2.ReportEndOffsetsResponse:
    request = group_pb2.ReportEndOffsetsRequest(topics=topics)
    return await stand.group_stub().ReportEndOffsets(request)


def failed(answer: group_pb2.ReportEndOffsetsResponse) -> dict[tuple[str, int], str]:
    assert not answer.HasField("error"), answer
    return {
        (topic.topic_name, each.partition): each.error.reason
        for topic in answer.failures
        for each in topic.partitions
    }


async def test_lag_is_shown_of_what_was_reported(stand: Stand) -> None:
    await commit(stand, *offsets(p0=7, p1=9, p2=1))
    answer = await report(stand, topic(p0=10, p1=0))
    assert failed(answer) == {}
    assert answer.max_age_ms == GrpcSettings().grpc_end_reports_max_age_ms
    assert await fetch(stand) == {("orders", 0): 10, ("orders", 1): 0, ("orders", 2): None}


async def test_an_end_says_if_it_is_reported() -> None:
    async with running_stand(end_offsets=GivenEnds(orders={0: 10})) as stand:
        await commit(stand, *offsets(p0=7, p1=9))
        await report(stand, topic(p0=99, p1=12))
        request = group_pb2.FetchOffsetsRequest(group_id="g", with_end_offsets=True)
        (found,) = (await stand.group_stub().FetchOffsets(request)).topics
        assert [row.is_end_reported for row in found.partitions] == [False, True]


async def test_a_report_is_a_request_that_counts_for_quotas() -> None:
    async with running_stand(quotas=quotas_of(request_rate=1.0)) as stand:
        stub = stand.group_stub()
        asked = group_pb2.ReportEndOffsetsRequest(topics=[topic(p0=1)])
        for _ in range(10):
            assert not failed(await stub.ReportEndOffsets(asked))
        delay_s, _, reason = await refusal_of(stub.ReportEndOffsets(asked))
        assert delay_s > 0
        assert reason == "THROTTLING_QUOTA_EXCEEDED"


async def test_lag_in_seconds_is_shown_where_the_end_moves(stand: Stand) -> None:
    await commit(stand, *offsets(p0=10))
    await report(stand, topic(p0=10))
    assert await fetch(stand) == {("orders", 0): 10}
    await report(stand, topic(p0=30))
    request = group_pb2.FetchOffsetsRequest(group_id="g", with_end_offsets=True)
    (found,) = (await stand.group_stub().FetchOffsets(request)).topics
    (row,) = found.partitions
    assert row.end_offset == 30
    assert row.HasField("lag_ms")
    assert 0 <= row.lag_ms < 60_000


async def test_what_is_known_wins() -> None:
    async with running_stand(end_offsets=GivenEnds(orders={0: 10})) as stand:
        await commit(stand, *offsets(p0=7, p1=9))
        assert failed(await report(stand, topic(p0=99, p1=12))) == {}
        assert await fetch(stand) == {("orders", 0): 10, ("orders", 1): 12}


async def test_what_is_too_old_is_not_known() -> None:
    settings = GrpcSettings(grpc_end_reports_max_age_ms=-1)
    async with running_stand(grpc_settings=settings) as stand:
        await commit(stand, *offsets(p0=7))
        assert failed(await report(stand, topic(p0=10))) == {}
        assert await fetch(stand) == {("orders", 0): None}


async def test_it_needs_the_right_to_write_to_the_topic() -> None:
    rights = Rights()
    async with running_stand(authorizer=rights) as stand:
        topic_id = await stand.create_topic("hidden", 1)
        await commit(stand, *offsets(p0=7), *offsets("hidden", p0=7))
        rights.denied.add((Operation.WRITE, ResourceType.TOPIC, "hidden"))
        rights.denied.add((Operation.WRITE, ResourceType.TOPIC, "absent"))
        answer = await report(
            stand,
            topic(p0=10),
            topic("hidden", p0=10, p7=1),
            topic("", topic_id=topic_id, p0=10),
            topic("absent", p0=10),
        )
        refused = "TOPIC_AUTHORIZATION_FAILED"
        assert failed(answer) == {
            ("hidden", 0): refused,
            ("hidden", 7): refused,
            ("", 0): refused,
            ("absent", 0): refused,
        }
        assert await fetch(stand) == {("orders", 0): 10, ("hidden", 0): None}


async def test_what_does_not_exist_fails_and_the_rest_is_taken(stand: Stand) -> None:
    await commit(stand, *offsets(p0=7))
    answer = await report(
        stand,
        topic(p0=10, p4=10, p2147483647=1),
        topic("absent", p0=1),
        topic("", topic_id=b"x" * 16, p1=1),
    )
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert failed(answer) == {
        ("orders", 4): unknown,
        ("orders", 2147483647): unknown,
        ("absent", 0): unknown,
        ("", 1): "UNKNOWN_TOPIC_ID",
    }
    assert await fetch(stand) == {("orders", 0): 10}


async def test_a_topic_that_is_made_again_has_no_report(stand: Stand) -> None:
    first = await stand.create_topic("again", 1)
    assert failed(await report(stand, topic("again", topic_id=first, p0=10))) == {}
    await stand.runtime.call(DeleteTopic(INTERNAL, TopicName("again")))
    await stand.create_topic("again", 1)
    await commit(stand, *offsets("again", p0=1))
    late = await report(stand, topic("again", topic_id=first, p0=11))
    assert failed(late) == {("again", 0): "UNKNOWN_TOPIC_ID"}
    assert await fetch(stand) == {("again", 0): None}


async def test_no_more_are_kept_than_there_may_be() -> None:
    settings = GrpcSettings(grpc_end_reports_max=2)
    async with running_stand(grpc_settings=settings) as stand:
        await commit(stand, *offsets(p0=1, p1=1, p2=1))
        answer = await report(stand, topic(p0=10, p1=10, p2=10))
        assert failed(answer) == {("orders", 2): "POLICY_VIOLATION"}
        message = answer.failures[0].partitions[0].error.error_message
        assert message.startswith("grpc.end.reports.max: ")
        assert failed(await report(stand, topic(p1=11))) == {}
        assert await fetch(stand) == {("orders", 0): 10, ("orders", 1): 11, ("orders", 2): None}


_HOSTILE: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "a report must have at least one topic"),
    "empty": ([topic(p0=1), topic()], "a topic of a report must have at least one partition"),
    "below": ([topic(p0=10, p1=-1)], "end offset -1 is below 0"),
    "partition": (
        [
            topic(p0=10),
            group_pb2.TopicEndOffsets(
                topic_name="orders", partitions=[group_pb2.PartitionEndOffset(partition=-1)]
            ),
        ],
        "partition -1 is below 0",
    ),
    "id": ([topic(topic_id=b"x", p0=1)], "a topic_id has 16 bytes, not 1"),
    "nameless": ([topic(p0=10), topic("", p0=1)], "set topic_id or topic_name for each topic"),
    "topics": (
        [group_pb2.TopicEndOffsets()] * (PARTITIONS_MAX + 1),
        f"a report may have at most {PARTITIONS_MAX} topics: split the report",
    ),
    "partitions": (
        [
            group_pb2.TopicEndOffsets(
                topic_name="orders",
                partitions=[group_pb2.PartitionEndOffset()] * (PARTITIONS_MAX + 1),
            )
        ],
        f"a report may have at most {PARTITIONS_MAX} partitions: split the report",
    ),
    "name": ([topic(p0=10), topic("n" * 250, p0=1)], "a topic name has 1 to 249 characters"),
}


@pytest.mark.parametrize("case", _HOSTILE)
async def test_of_a_report_that_cannot_be_right_nothing_is_taken(stand: Stand, case: str) -> None:
    topics, message = _HOSTILE[case]
    await commit(stand, *offsets(p0=7))
    answer = await report(stand, *topics)
    assert answer.error.error_message.startswith(message)
    assert not answer.failures
    assert await fetch(stand) == {("orders", 0): None}


async def test_as_many_as_there_may_be_are_answered(stand: Stand) -> None:
    many = [
        group_pb2.PartitionEndOffset(partition=number, end_offset=(1 << 63) - 1)
        for number in range(PARTITIONS_MAX)
    ]
    answer = await report(stand, group_pb2.TopicEndOffsets(topic_name="orders", partitions=many))
    assert len(failed(answer)) == PARTITIONS_MAX - 4
    await commit(stand, *offsets(p0=0))
    assert await fetch(stand) == {("orders", 0): (1 << 63) - 1}


async def test_a_report_moves_no_offsets(stand: Stand) -> None:
    """Who may write to a topic must not be able to have a reset jump over records."""
    await commit(stand, *offsets(p0=7))
    await report(stand, topic(p0=1_000))
    resets = reset_pb2_grpc.ResetServiceStub(stand.channel())
    request = reset_pb2.ResetOffsetsRequest(
        group_id="g", position=reset_pb2.RESET_POSITION_LATEST, validate_only=True
    )
    with pytest.raises(grpc.aio.AioRpcError, match="where the log ends is not known here"):
        await resets.ResetOffsets(request)


async def test_in_front_of_a_cluster_reports_are_refused() -> None:
    ends = GivenEnds(orders={0: 10})
    async with running_stand(upstream=FakeUpstream(), end_offsets=ends) as stand:
        answer = await report(stand, topic(p0=99))
        assert answer.error.reason == "POLICY_VIOLATION"
        assert "cluster" in answer.error.error_message
        await commit(stand, *offsets(p0=7, p1=7))
        assert await fetch(stand) == {("orders", 0): 10, ("orders", 1): None}
