"""``as_of`` over gRPC: statuses with details, and a client that disconnects."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from coordinator.runtime.as_of import worker_process
from coordinator.service.wire.error_statuses import DETAILS_KEY
from model.access.acls import Operation, ResourceType
from muster.v1 import admin_pb2, group_pb2, reset_pb2, reset_pb2_grpc, types_pb2
from storage.log.trim import compute_trim_limit
from tests.golden.past_server import RECORDED_MS, PastServer, import_golden, running_past_server
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand
from tests.support.trimming import trim_once
from tests.support.waiting import until
from tests.unit.runtime.as_of.history_processes import NEVER_ANSWERS, children

GROUP = "o08-consumer-uniform"
CLASSIC_GROUP = "o01-classic-range"
PARTITION = 47


def read_info(error: grpc.aio.AioRpcError) -> ErrorInfo:
    metadata: Any = error.trailing_metadata()
    data = dict(metadata)[DETAILS_KEY]
    info = ErrorInfo()
    assert Status.FromString(data).details[0].Unpack(info)
    return info


async def fail(server: PastServer, as_of: types_pb2.AsOf) -> grpc.aio.AioRpcError:
    """The status of both calls, which must be equal."""
    with pytest.raises(grpc.aio.AioRpcError) as described:
        await server.describe(GROUP, as_of)
    with pytest.raises(grpc.aio.AioRpcError) as fetched:
        await server.fetch(GROUP, as_of, require_stable=False)
    assert fetched.value.code() is described.value.code()
    assert fetched.value.details() == described.value.details()
    assert read_info(fetched.value) == read_info(described.value)
    return described.value


async def test_an_offset_and_its_time_show_the_same_and_say_where_that_is(tmp_path: Path) -> None:
    import_golden(tmp_path / "store")
    async with running_past_server(tmp_path / "store") as server:
        by_time = await server.describe(GROUP, types_pb2.AsOf(timestamp_ms=1_795_214_657_267))
        assert by_time is not None
        assert by_time.position == types_pb2.LogPosition(
            partition=PARTITION, offset=42, timestamp_ms=1_795_214_656_852
        )
        by_offset = await server.describe(GROUP, types_pb2.AsOf(offset=42))
        assert by_offset == by_time
        assert by_time.group.group_epoch == 4
        assert len(by_time.group.members) == 3
        now = admin_pb2.DescribeGroupRequest(group_id=GROUP)
        live = await server.admin.DescribeGroup(now)
        assert not live.HasField("position")
        last = await server.describe(GROUP, types_pb2.AsOf(timestamp_ms=RECORDED_MS))
        assert last is not None
        assert last.group == live.group
        before = await server.fetch(GROUP, types_pb2.AsOf(timestamp_ms=0), require_stable=False)
        assert not before.topics
        assert before.position == types_pb2.LogPosition(partition=PARTITION)


async def test_what_cannot_be_told_is_a_status_that_says_what_can(tmp_path: Path) -> None:
    import_golden(tmp_path / "store")
    async with running_past_server(tmp_path / "store") as server:
        limit = compute_trim_limit(server.store, PARTITION)  # type: ignore[arg-type]
        assert trim_once(server.store, PARTITION, limit, 2_000)  # type: ignore[arg-type]
        for as_of in (types_pb2.AsOf(offset=1), types_pb2.AsOf(timestamp_ms=1)):
            error = await fail(server, as_of)
            assert error.code() is grpc.StatusCode.OUT_OF_RANGE
            info = read_info(error)
            assert info.reason == "OFFSET_OUT_OF_RANGE"
            assert info.metadata["group_id"] == GROUP
            assert info.metadata["log_partition"] == str(PARTITION)
        told = int(info.metadata["earliest_offset"])
        assert await server.describe(GROUP, types_pb2.AsOf(offset=told)) is not None
        earliest_ms = int(info.metadata["earliest_timestamp_ms"])
        assert await server.describe(GROUP, types_pb2.AsOf(timestamp_ms=earliest_ms)) is not None
        for as_of in (types_pb2.AsOf(offset=1 << 60), types_pb2.AsOf(timestamp_ms=1 << 62)):
            error = await fail(server, as_of)
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "future" in str(error.details())


@pytest.mark.parametrize(
    ("as_of", "field"),
    [
        (types_pb2.AsOf(), "as_of"),
        (types_pb2.AsOf(offset=-1), "as_of.offset"),
        (types_pb2.AsOf(timestamp_ms=-1), "as_of.timestamp_ms"),
    ],
)
async def test_what_is_no_position_is_refused(
    stand: Stand, as_of: types_pb2.AsOf, field: str
) -> None:
    request = admin_pb2.DescribeGroupRequest(group_id="g", as_of=as_of)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stand.admin_stub().DescribeGroup(request)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert field in str(caught.value.details())
    fetch = group_pb2.FetchOffsetsRequest(group_id="g", as_of=as_of)
    answer = await stand.group_stub().FetchOffsets(fetch)
    assert answer.error.reason == "INVALID_REQUEST"
    assert field in answer.error.error_message


async def test_a_log_in_memory_has_no_past(stand: Stand) -> None:
    request = admin_pb2.DescribeGroupRequest(group_id="g", as_of=types_pb2.AsOf(offset=0))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stand.admin_stub().DescribeGroup(request)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_client_that_goes_away_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "WORKER_PROGRAM", NEVER_ANSWERS)
    import_golden(tmp_path / "store")
    async with running_past_server(tmp_path / "store") as server:
        request = admin_pb2.DescribeGroupRequest(group_id=GROUP, as_of=types_pb2.AsOf(offset=0))
        call = server.admin.DescribeGroup(request)
        waiting = asyncio.ensure_future(call)
        await until(children)
        call.cancel()
        await asyncio.wait((waiting,))
        await until(lambda: not children())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await server.admin.DescribeGroup(request, timeout=0.3)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        # Sooner than the server's own timeout of a minute.
        await until(lambda: not children())


async def test_a_classic_group_is_shown_as_it_was_only_with_rights_on_its_topics(
    tmp_path: Path,
) -> None:
    import_golden(tmp_path / "store")
    rights = Rights()
    async with running_past_server(tmp_path / "store", authorizer=rights) as server:
        as_of = types_pb2.AsOf(offset=2)
        shown = await server.describe(CLASSIC_GROUP, as_of)
        assert shown is not None
        assert "t3" in shown.group.members[0].subscribed_topic_names
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "t3"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await server.describe(CLASSIC_GROUP, as_of)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_offsets_of_a_deleted_topic_are_shown_by_its_id_only_with_rights_on_its_name(
    tmp_path: Path,
) -> None:
    rights = Rights()
    async with running_past_server(tmp_path / "store", authorizer=rights) as server:
        made = await server.admin.CreateTopic(
            admin_pb2.CreateTopicRequest(topic_name="hidden", num_partitions=1)
        )
        row = types_pb2.PartitionOffset(partition=0, offset=7)
        topic_id = made.topic.topic_id
        topic = types_pb2.TopicOffsets(topic_id=topic_id, partitions=[row])
        commit = group_pb2.CommitOffsetsRequest(group_id="g", topics=[topic])
        assert not (await server.groups.CommitOffsets(commit)).failures
        await server.admin.DeleteTopic(admin_pb2.DeleteTopicRequest(topic_id=topic_id))
        wanted = types_pb2.TopicPartitions(topic_id=topic_id, partitions=[0])

        async def fetch() -> types_pb2.CommittedTopic:
            request = group_pb2.FetchOffsetsRequest(
                group_id="g",
                partitions=types_pb2.PartitionSet(topics=[wanted]),
                as_of=types_pb2.AsOf(offset=0),
            )
            (topic,) = (await server.groups.FetchOffsets(request)).topics
            return topic

        assert (await fetch()).partitions[0].offset == 7
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "hidden"))
        for wanted.topic_name in ("", "allowed"):
            refused = await fetch()
            assert refused.topic_name == wanted.topic_name
            assert not refused.partitions[0].HasField("offset")
            assert refused.partitions[0].error.reason == "TOPIC_AUTHORIZATION_FAILED"


async def test_offsets_are_reset_to_what_they_were(tmp_path: Path) -> None:
    import_golden(tmp_path / "store")
    async with running_past_server(tmp_path / "store") as server:
        as_of = types_pb2.AsOf(offset=42)
        then = await server.fetch(GROUP, as_of, require_stable=False)
        expected = {
            (topic.topic_name, row.partition): row.offset
            for topic in then.topics
            for row in topic.partitions
        }
        async with grpc.aio.insecure_channel(server.target) as channel:
            stub = reset_pb2_grpc.ResetServiceStub(channel)
            await stub.ResetOffsets(reset_pb2.ResetOffsetsRequest(group_id=GROUP, offset=1))
            request = reset_pb2.ResetOffsetsRequest(group_id=GROUP, as_of=as_of)
            done = await stub.ResetOffsets(request)
            assert {row.offset_before for row in done.partitions} == {1}
            now = await server.groups.FetchOffsets(group_pb2.FetchOffsetsRequest(group_id=GROUP))
            found = {
                (topic.topic_name, row.partition): row.offset
                for topic in now.topics
                for row in topic.partitions
            }
            assert found == expected
            before = reset_pb2.ResetOffsetsRequest(
                group_id=GROUP, as_of=types_pb2.AsOf(timestamp_ms=0)
            )
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.ResetOffsets(before)
            assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            assert "had no committed offsets then" in str(caught.value.details())


@pytest.mark.parametrize("is_named", [True, False])
async def test_offsets_of_a_topic_that_was_made_again_are_none_of_the_new_one(
    tmp_path: Path, is_named: bool
) -> None:
    async with running_past_server(tmp_path / "store") as server:
        make = admin_pb2.CreateTopicRequest(topic_name="orders", num_partitions=1)
        other = admin_pb2.CreateTopicRequest(topic_name="others", num_partitions=1)
        await server.admin.CreateTopic(other)
        old_id = (await server.admin.CreateTopic(make)).topic.topic_id
        for name in ("orders", "others"):
            row = types_pb2.PartitionOffset(partition=0, offset=7)
            topic = types_pb2.TopicOffsets(topic_name=name, partitions=[row])
            if name == "orders" and not is_named:
                topic = types_pb2.TopicOffsets(topic_id=old_id, partitions=[row])
            commit = group_pb2.CommitOffsetsRequest(group_id="g", topics=[topic])
            assert not (await server.groups.CommitOffsets(commit)).failures
        await server.admin.DeleteTopic(admin_pb2.DeleteTopicRequest(topic_id=old_id))
        assert (await server.admin.CreateTopic(make)).topic.topic_id != old_id
        async with grpc.aio.insecure_channel(server.target) as channel:
            stub = reset_pb2_grpc.ResetServiceStub(channel)
            asked = reset_pb2.ResetOffsetsRequest(group_id="g", as_of=types_pb2.AsOf(offset=1))
            done = await stub.ResetOffsets(asked)
        assert [(row.topic_name, row.offset_after) for row in done.partitions] == [("others", 7)]
