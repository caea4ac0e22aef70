"""A server with both doors and an audit that keeps what it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc.aio
from google.protobuf.message_factory import GetMessageClass

from coordinator.runtime.authorizer import AclAuthorizer
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from gateway.wire_server import KafkaServer
from model.caller import ANONYMOUS, INTERNAL
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, TopicName
from storage.transfer.backup import Backup
from tests.support.audits import KeptAudit
from tests.support.gateway.wire_rig import NoRecords, topic_id_of
from tests.support.gateway.wire_steps import UNPARKED, join_fields
from tests.support.memory import MemoryLogStore
from tests.support.service.fake_upstream import FakeUpstream
from tests.support.service.methods import METHODS
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, commit, join

COMMIT, JOIN, LEAVE, TXN_COMMIT, HEARTBEAT = 8, 11, 13, 28, 68
PRODUCER: Final = 70


class FakeBackups:
    async def create(self, folder: Path, *, with_credentials: bool) -> Backup:
        return Backup("cluster", 0, (1,), {})


@dataclass
class Doors:
    """A server with both doors, on which ``User:ANONYMOUS`` may do everything."""

    runtime: Runtime
    wire: Connection
    channel: grpc.aio.Channel
    audit: KeptAudit

    async def call(self, name: str, /, **fields: Any) -> Any:
        method = METHODS[name]
        assert method.containing_service is not None
        ask = self.channel.unary_unary(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return await ask(GetMessageClass(method.input_type)(**fields))

    async def commit(self, offset: int) -> None:
        await self.wire.ask(COMMIT, 8, **commit("g", "orders", {0: offset, 1: offset}))

    async def transact(self) -> int:
        """Begin a transaction of the group; its log partition."""
        row = {"partition_index": 0, "committed_offset": 9, "committed_metadata": ""}
        answer = await self.wire.ask(
            TXN_COMMIT,
            3,
            transactional_id="tx",
            group_id="g",
            producer_id=PRODUCER,
            producer_epoch=2,
            generation_id=-1,
            topics=[{"name": "orders", "partitions": [row]}],
        )
        assert answer.topics[0].partitions[0].error_code == 0
        return self.runtime.partition_of(GroupId("g"))

    async def empty_consumer_group(self) -> None:
        answer = await self.wire.ask(HEARTBEAT, 1, **join("g", "m", ("orders",)))
        left = await self.wire.ask(HEARTBEAT, 1, **beat("g", "m", -1))
        assert (answer.error_code, left.error_code) == (0, 0)

    async def frozen_group(self) -> None:
        await self.empty_consumer_group()
        await self.call("FreezeService.FreezeGroup", group_id="g")

    async def join_static(self) -> None:
        fields = join_fields(5, "g") | {"group_instance_id": "pod-1"}
        assert (await self.wire.ask(JOIN, 5, **fields)).error_code == 0


@asynccontextmanager
async def run_doors() -> AsyncIterator[Doors]:
    audit = KeptAudit()
    authorizer = AclAuthorizer(frozenset({ANONYMOUS}), audit=audit)
    settings = CoordinatorSettings(group_initial_rebalance_delay_ms=0)
    runtime = Runtime(MemoryLogStore(4), settings, authorizer=authorizer, audit=audit)
    await runtime.start()
    await runtime.loaded()
    wire = KafkaServer(runtime, authorizer, NoRecords(runtime), UNPARKED)  # type: ignore[arg-type]
    kafka_port = await wire.start("127.0.0.1", 0)
    upstream = FakeUpstream()
    upstream.add("g")
    server = GrpcServer(
        runtime,
        authorizer,
        GrpcSettings(),
        backups=FakeBackups(),
        audit=audit,
        upstream=upstream,
    )
    grpc_port = await server.start("127.0.0.1", 0)
    await runtime.call(CreateTopic(INTERNAL, TopicName("orders"), topic_id_of("orders"), 3))
    try:
        async with (
            await Connection.open(f"127.0.0.1:{kafka_port}", "cli-7") as client,
            grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel,
        ):
            yield Doors(runtime, client, channel, audit)
    finally:
        await server.stop(0.1)
        await wire.stop()
        await runtime.stop()
