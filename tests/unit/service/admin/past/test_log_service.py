"""The log of a real server over gRPC: what lies on its disk, resumed, bounded, and refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from coordinator.runtime.as_of import log_reads
from coordinator.runtime.as_of.history_reads import HistoryReads, HistoryReadSettings
from coordinator.runtime.as_of.history_worker import HistoryReader, HistoryResult, WorkerRequest
from coordinator.runtime.as_of.log_reads import LogReads, ReadBudget
from coordinator.runtime.as_of.reader_places import Place
from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.runtime import Runtime
from coordinator.service.admin.past import log_service
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from coordinator.service.wire.error_statuses import DETAILS_KEY
from model.access.acls import Operation, ResourceType
from model.caller import INTERNAL
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogOffset, LogPartition, MemberId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from muster.v1 import log_pb2, log_pb2_grpc
from storage.log.trim import compute_trim_limit
from storage.log_store import read_batch_range
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_store import RocksLogStore
from tests.support.authorizers import Rights
from tests.support.batches import decode_batches
from tests.support.storage.appends import write_checkpoint
from tests.support.trimming import trim_once
from tests.support.waiting import until

G = GroupId("g")
T = TopicName("orders")
P = LogPartition(0)
CLUSTER = (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")


class Stand(NamedTuple):
    """A server on a store on disk, with one log partition."""

    store: RocksLogStore
    runtime: Runtime
    server: GrpcServer
    port: int
    log: Any

    async def commit(self, *offsets: int, group: GroupId = G, topic: TopicName = T) -> None:
        for offset in offsets:
            rows = make_offset_columns([(0, offset, -1, "x" * 100)])
            topics = (TopicOffsets(topic, None, rows),)
            await self.runtime.call(OffsetCommit(INTERNAL, group, MemberId(""), None, topics))
        await until(lambda: self.store.durable_offset(P) == self.store.next_offset(P))

    async def commit_much(self) -> None:
        """More than a client that does not read lets the server send."""
        for number in range(8):
            rows = make_offset_columns([(each, number, -1, "x" * 4_000) for each in range(200)])
            topics = (TopicOffsets(T, None, rows),)
            await self.runtime.call(OffsetCommit(INTERNAL, G, MemberId(""), None, topics))
        await until(lambda: self.store.durable_offset(P) == 1_600)

    async def read(self, **fields: Any) -> list[log_pb2.ReadLogResponse]:
        fields = {"offset": 0} | fields if "group_id" not in fields else fields
        return [page async for page in self.log.ReadLog(log_pb2.ReadLogRequest(**fields))]

    async def fail(self, **fields: Any) -> tuple[ErrorInfo, str]:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.read(**fields)
        metadata: Any = caught.value.trailing_metadata()
        info = ErrorInfo()
        assert Status.FromString(dict(metadata)[DETAILS_KEY]).details[0].Unpack(info)
        return info, str(caught.value.details())

    def on_disk(self, start: int = 0) -> bytes:
        return b"".join(self.store.read_log(P, LogOffset(start)))

    def trim(self, bytes_max: int) -> None:
        write_checkpoint(self.store)
        assert trim_once(self.store, P, compute_trim_limit(self.store, P), bytes_max)
        self.store.sync()


class ReadsOnThread(HistoryReads):
    """What a worker reads, without the seconds that a process takes to start."""

    def __init__(self, folder: Path, store: RocksLogStore, runtime: Runtime) -> None:
        super().__init__(folder, store, runtime, HistoryReadSettings())
        self._reader = HistoryReader(folder, runtime.settings)

    async def _ask(self, request: WorkerRequest, place: Place) -> HistoryResult:
        return await asyncio.to_thread(self._reader.read, request)

    async def stop(self) -> None:
        self._reader.close()


@asynccontextmanager
async def running(
    folder: Path,
    authorizer: Authorizer | None = None,
    port: int = 0,
    per_s: int = 1 << 30,
    make_reads: Any = ReadsOnThread,
) -> AsyncIterator[Stand]:
    store = open_store(folder, partitions=1)
    runtime = Runtime(store, CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    history = make_reads(folder, store, runtime)
    reads = LogReads(history, store, ReadBudget(per_s))
    server = GrpcServer(runtime, authorizer or AllowAll(), GrpcSettings(), history, log_reads=reads)
    port = await server.start("127.0.0.1", port)
    for number, topic in enumerate((T, TopicName("secret"))):
        if topic not in runtime.image.by_name:
            topic_id = TopicId(bytes([number + 1] * 16))
            await runtime.call(CreateTopic(INTERNAL, topic, topic_id, 200))
    # A small window: a client that does not read soon stops the server.
    options = (("grpc.http2.lookahead_bytes", 1), ("grpc.use_local_subchannel_pool", 1))
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)
    try:
        yield Stand(store, runtime, server, port, log_pb2_grpc.LogServiceStub(channel))
    finally:
        await channel.close(None)
        await server.stop(5.0)
        await history.stop()
        await runtime.stop()
        store.close()


def join(pages: list[log_pb2.ReadLogResponse]) -> bytes:
    return b"".join(page.batches for page in pages)


async def take_all(reading: Any, pages: list[log_pb2.ReadLogResponse]) -> None:
    async for page in reading:
        pages.append(page)


def list_offsets(data: bytes) -> Iterator[int]:
    for batch in decode_batches(data):
        yield from (record.offset for record in batch.records)


def make_process(folder: Path, store: RocksLogStore, runtime: Runtime) -> HistoryReads:
    return HistoryReads(folder, store, runtime, HistoryReadSettings())


async def test_the_log_is_read_as_it_lies_and_gone_on_with_where_it_ended(tmp_path: Path) -> None:
    async with running(tmp_path, make_reads=make_process) as stand:
        await stand.commit(*range(5))
        described = await stand.log.DescribeLog(log_pb2.DescribeLogRequest())
        assert described.cluster_id == stand.store.cluster_id
        start = log_pb2.HistoryStart(offset=0, before_ms=-1)
        assert list(described.partitions) == [
            log_pb2.LogPartitionDescription(partition=0, history_start=start, end_offset=5)
        ]
        pages = await stand.read()
        assert join(pages) == stand.on_disk()
        assert (pages[-1].next_offset, pages[-1].end_offset) == (5, 5)
        (idle,) = await stand.read(offset=5)
        assert (idle.batches, idle.next_offset) == (b"", 5)
        await stand.commit(*range(3))
        assert join(await stand.read(offset=5)) == stand.on_disk(5)
        assert list(list_offsets(join(await stand.read(offset=2, end_offset=4)))) == [2, 3]
        one = join(await stand.read(offset=2, max_bytes=1))
        assert read_batch_range(one) == (2, 1)
        two = join(await stand.read(offset=2, max_bytes=2 * len(one)))
        assert list(list_offsets(two)) == [2, 3]
        last = join(await stand.read(before_offset=7, end_offset=7))
        assert read_batch_range(last) == (6, 1)
        time = max(batch.max_timestamp for batch in decode_batches(stand.on_disk()))
        assert 7 in list_offsets(join(await stand.read(timestamp_ms=time)))
        assert join(await stand.read(timestamp_ms=time + 1)) == b""


async def test_what_is_no_request_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        await stand.commit(1)
        for field, fields in {
            "start": {"group_id": "g"},
            "partition": {"partition": 1},
            "end_offset": {"end_offset": -1},
            "max_bytes": {"max_bytes": -1},
            "offset": {"offset": -1},
        }.items():
            info, message = await stand.fail(**fields)
            assert info.reason == "INVALID_REQUEST"
            assert message.startswith(f"INVALID_REQUEST: {field}") or "one of" in message
        info, message = await stand.fail(group_id="g", partition=1, offset=0)
        assert "leave it out" in message
        for fields in ({"offset": 2}, {"end_offset": 2}, {"before_offset": 2}):
            info, message = await stand.fail(**fields)
            assert info.reason == "OFFSET_OUT_OF_RANGE"
            assert info.metadata["end_offset"] == "1"
            assert message.endswith("log partition 0 ends at offset 1, before 2")


async def test_the_raw_log_needs_the_cluster_and_a_group_its_topics(tmp_path: Path) -> None:
    rights = Rights()
    async with running(tmp_path, rights) as stand:
        await stand.commit(1)
        await stand.commit(2, group=GroupId("other"), topic=TopicName("secret"))
        await stand.commit(3)
        rights.denied = {CLUSTER, (Operation.DESCRIBE, ResourceType.TOPIC, "secret")}
        info, _ = await stand.fail()
        assert info.reason == "CLUSTER_AUTHORIZATION_FAILED"
        with pytest.raises(grpc.aio.AioRpcError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await stand.log.DescribeLog(log_pb2.DescribeLogRequest())
        found = join(await stand.read(group_id="g", offset=0))
        assert list(list_offsets(found)) == [0, 2]
        assert b"secret" not in found
        info, message = await stand.fail(group_id="other", offset=0)
        assert info.reason == "TOPIC_AUTHORIZATION_FAILED"
        assert "secret" not in message
        rights.denied = {(Operation.DESCRIBE, ResourceType.GROUP, "g")}
        info, _ = await stand.fail(group_id="g", offset=0)
        assert info.reason == "GROUP_AUTHORIZATION_FAILED"


async def test_positions_before_the_history_are_refused_by_name(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        await stand.commit(*range(6))
        whole = stand.on_disk()
        await stand.read()
        stand.trim(1 << 20)
        await stand.commit(6)
        described = await stand.log.DescribeLog(log_pb2.DescribeLogRequest())
        start = described.partitions[0].history_start
        assert 1 < start.offset < 6
        for fields in ({"offset": 0}, {"timestamp_ms": 1}, {"before_offset": 1}):
            info, message = await stand.fail(**fields)
            assert info.reason == "OFFSET_OUT_OF_RANGE"
            assert info.metadata["history_start_offset"] == str(start.offset)
            assert info.metadata["history_before_ms"] == str(start.before_ms)
            assert f"begins at offset {start.offset}" in message
        assert join(await stand.read(offset=start.offset, end_offset=6)) in whole
        left = await stand.read(with_compacted=True)
        assert join(left) == stand.on_disk()
        assert list(list_offsets(join(left))) == [start.offset - 1, *range(start.offset, 7)]
        assert left[-1].history_start == start


async def test_trimming_may_overtake_a_reader_who_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reads, "PAGE_BYTES", 1)
    async with running(tmp_path, per_s=1_000) as stand:
        await stand.commit(*range(8))
        readings: dict[bool, Any] = {}
        pages: dict[bool, list[log_pb2.ReadLogResponse]] = {}
        for with_compacted in (True, False):
            request = log_pb2.ReadLogRequest(offset=0, with_compacted=with_compacted)
            readings[with_compacted] = aiter(stand.log.ReadLog(request))
            pages[with_compacted] = [await anext(readings[with_compacted])]
        stand.trim(1 << 20)
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await take_all(readings[False], pages[False])
        assert ended.value.code() is grpc.StatusCode.OUT_OF_RANGE
        assert 0 < pages[False][-1].next_offset < 7, "it was overtaken"
        await take_all(readings[True], pages[True])
        seen = list(list_offsets(join(pages[True])))
        assert seen == sorted(set(seen)), "nothing twice, nothing in another order"
        assert seen[-1] == 7


async def test_a_restart_in_the_middle_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reads, "PAGE_BYTES", 1)
    pages = []
    async with running(tmp_path, per_s=2_000) as stand:
        await stand.commit(*range(20))
        port = stand.port
        reading = aiter(stand.log.ReadLog(log_pb2.ReadLogRequest(offset=0)))
        pages += [await anext(reading) for _ in range(3)]
        stopping = asyncio.create_task(stand.server.stop(30.0))
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await take_all(reading, pages)
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "go on from the last next_offset" in str(ended.value.details())
        async with asyncio.timeout(10.0):
            await stopping
    assert 3 <= len(pages) < 20
    async with running(tmp_path, port=port) as stand:
        pages += await stand.read(offset=pages[-1].next_offset)
        assert list(list_offsets(join(pages))) == list(range(20))
        assert join(pages) == stand.on_disk()


async def test_who_takes_nothing_is_not_read_for_and_loses_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_service, "TAKEN_WITHIN_S", 3.0)
    monkeypatch.setattr(log_reads, "READINGS_MAX", 1)
    async with running(tmp_path) as stand:
        await stand.commit_much()
        reading = aiter(stand.log.ReadLog(log_pb2.ReadLogRequest(offset=0)))
        pages = [await anext(reading)]
        info, message = await stand.fail()
        assert info.reason == "THROTTLING_QUOTA_EXCEEDED"
        assert "is being read 1 times, 1 times by you" in message
        await asyncio.sleep(4.5)
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await take_all(reading, pages)
        assert ended.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        pages += await stand.read(offset=pages[-1].next_offset)
        assert join(pages) == stand.on_disk()


async def test_who_opens_many_and_reads_none_makes_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reads, "READINGS_MAX", 4)
    who = ["many"]
    monkeypatch.setattr(log_service, "compute_holder", lambda _: who[0])
    async with running(tmp_path) as stand:
        await stand.commit_much()
        request = log_pb2.ReadLogRequest(offset=0)
        opened = [aiter(stand.log.ReadLog(request)) for _ in range(4)]
        pages = [[await anext(reading)] for reading in opened]
        info, message = await stand.fail()
        assert info.reason == "THROTTLING_QUOTA_EXCEEDED"
        assert "read 4 times, 4 times by you: read a stream to its end or cancel it" in message
        for name in ("one", "another"):
            who[0] = name
            assert join(await stand.read()) == stand.on_disk()
        taking = [take_all(*each) for each in zip(opened, pages, strict=True)]
        ends = await asyncio.gather(*taking, return_exceptions=True)
        (lost,) = (number for number, end in enumerate(ends) if end is not None)
        ended: Any = ends[lost]
        assert ended.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "go on from the last next_offset" in str(ended.details())
        pages[lost] += await stand.read(offset=pages[lost][-1].next_offset)
        assert {join(taken) for taken in pages} == {stand.on_disk()}


async def test_the_log_of_a_stopped_partition_is_read(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        await stand.commit(1, 2)
        shard: Any = stand.runtime._shards[0]
        shard.soft.is_stopped = True
        assert list(list_offsets(join(await stand.read()))) == [0, 1]
        assert list(list_offsets(join(await stand.read(group_id="g", offset=0)))) == [0, 1]
