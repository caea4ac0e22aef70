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

from coordinator.runtime.as_of import history_reads
from coordinator.service.wire.error_statuses import DETAILS_KEY
from muster.v1 import admin_pb2, group_pb2, types_pb2
from storage.log.trim import compute_trim_limit
from tests.golden.past_server import RECORDED_MS, PastServer, import_golden, running_past_server
from tests.support.service.stand import Stand
from tests.support.trimming import trim_once
from tests.support.waiting import until
from tests.unit.runtime.as_of.history_processes import NEVER_ANSWERS, children

GROUP = "o08-consumer-uniform"
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
    monkeypatch.setattr(history_reads, "WORKER_PROGRAM", NEVER_ANSWERS)
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
