"""A client tells where partitions end."""

from __future__ import annotations

import pytest

import muster
from coordinator.service.settings import GrpcSettings
from muster import TopicPartition
from muster.connection import end_reports
from tests.support.service.stand import Stand, running_stand

ORDERS_0 = TopicPartition("orders", 0)


def find(stand: Stand, partition: int) -> int | None:
    """Where the server believes that a partition of ``orders`` ends."""
    ends = stand.server._services.known_ends
    assert ends is not None
    assert ends.reports is not None
    (topic,) = stand.runtime.image.by_name.values()
    return ends.reports.find(topic.topic_id, partition, ends.now_ms())


async def test_ends_are_told_in_as_many_calls_as_they_need(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_reports, "PARTITIONS_MAX", 3)
    async with muster.Client(stand.target) as client:
        ends = {TopicPartition("orders", number): number * 10 for number in range(4)}
        believed_s = await client.report_end_offsets(ends)
        assert believed_s == GrpcSettings().grpc_end_reports_max_age_ms / 1_000
        assert [find(stand, number) for number in range(4)] == [0, 10, 20, 30]


async def test_what_is_not_taken_is_named_and_the_rest_is_taken(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_reports, "PARTITIONS_MAX", 1)
    absent = TopicPartition("orders", 9)
    async with muster.Client(stand.target) as client:
        with pytest.raises(muster.ReportFailed, match="not reported: UNKNOWN_TOPIC") as failed:
            await client.report_end_offsets({absent: 1, ORDERS_0: 7})
        assert failed.value.failures.keys() == {absent}
        assert find(stand, 0) == 7


async def test_a_report_that_cannot_be_right_is_refused(stand: Stand) -> None:
    client = muster.Client(stand.target)
    with pytest.raises(muster.MusterError, match="end offset -1 is below 0"):
        await client.report_end_offsets({ORDERS_0: -1})
    with pytest.raises(ValueError, match="no partitions"):
        await client.report_end_offsets({})
    await client.close()
    with pytest.raises(muster.MusterError, match="the client was closed"):
        await client.report_end_offsets({ORDERS_0: 1})


async def test_a_server_that_is_gone_is_an_error_at_once() -> None:
    async with running_stand() as stand:
        target = stand.target
    async with muster.Client(target) as client:
        with pytest.raises(muster.MusterError, match="connection refused"):
            await client.report_end_offsets({ORDERS_0: 1})
