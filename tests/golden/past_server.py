"""A server on the imported log of a real Kafka, asked over gRPC what its groups were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import grpc.aio

from coordinator.runtime.as_of.history_reads import HistoryReads, HistoryReadSettings
from coordinator.runtime.as_of.log_reads import LogReads, ReadBudget
from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.runtime import Runtime
from coordinator.service.calls.local_calls import LocalCalls
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.configs.coordinator_settings import CoordinatorSettings
from model.log.side_records import TopicSideValue
from muster.v1 import admin_pb2, admin_pb2_grpc, group_pb2, group_pb2_grpc, types_pb2
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_store import RocksLogStore
from storage.segments.folder import open_segments
from storage.transfer.import_log import ImportOptions, import_segments
from storage.transfer.import_side import SideImport
from tests.golden.kafka_log import PARTITIONS, final_topics
from tests.support.storage.golden import GOLDEN

RECORDED_MS = 1_795_215_000_000
"""Some minutes after the last record was written."""


class RecordedClock:
    """The time of the recording, standing still."""

    def wall_ms(self) -> int:
        return RECORDED_MS

    def monotonic_ms(self) -> int:
        return 0


class PastServer(NamedTuple):
    """The server, where it listens, and a client of it."""

    target: str
    store: RocksLogStore
    history: HistoryReads
    admin: admin_pb2_grpc.AdminServiceAsyncStub
    groups: group_pb2_grpc.GroupServiceAsyncStub
    calls: LocalCalls

    async def describe(
        self, group_id: str, as_of: types_pb2.AsOf
    ) -> admin_pb2.DescribeGroupResponse | None:
        """``None`` where there is no such group."""
        request = admin_pb2.DescribeGroupRequest(group_id=group_id, as_of=as_of)
        try:
            return await self.admin.DescribeGroup(request)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return None
            raise

    async def fetch(
        self, group_id: str, as_of: types_pb2.AsOf, *, require_stable: bool
    ) -> group_pb2.FetchOffsetsResponse:
        request = group_pb2.FetchOffsetsRequest(
            group_id=group_id, as_of=as_of, require_stable=require_stable
        )
        return await self.groups.FetchOffsets(request)


def import_golden(folder: Path) -> None:
    """The golden segments in the store of a folder."""
    topics = {
        topic.name: TopicSideValue(topic.topic_id, topic.partitions) for topic in final_topics()
    }
    options = ImportOptions(
        partitions=PARTITIONS, side=SideImport(topics=topics, imported_at_ms=RECORDED_MS)
    )
    import_segments(open_segments(GOLDEN / "segments"), folder, options, lambda _: None)


@asynccontextmanager
async def running_past_server(
    folder: Path,
    settings: HistoryReadSettings | None = None,
    authorizer: Authorizer | None = None,
    port: int = 0,
) -> AsyncIterator[PastServer]:
    """Serves the store of a folder."""
    store = open_store(folder, partitions=PARTITIONS)
    clock = RecordedClock()
    runtime = Runtime(store, CoordinatorSettings(), clock=clock)
    await runtime.start()
    await runtime.loaded()
    chosen = settings or HistoryReadSettings()
    history = HistoryReads(folder, store, runtime, chosen, clock.wall_ms)
    server = GrpcServer(
        runtime,
        authorizer or AllowAll(),
        GrpcSettings(),
        history,
        log_reads=LogReads(history, store, ReadBudget(1 << 30)),
    )
    port = await server.start("127.0.0.1", port)
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    try:
        yield PastServer(
            f"127.0.0.1:{port}",
            store,
            history,
            admin_pb2_grpc.AdminServiceStub(channel),
            group_pb2_grpc.GroupServiceStub(channel),
            server.local_calls,
        )
    finally:
        await channel.close(None)
        await server.stop(0.5)
        await history.stop()
        await runtime.stop()
        store.close()
