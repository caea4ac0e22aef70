"""A real coordinator on a log in memory, behind a real gRPC server on a free port."""

from __future__ import annotations

import operator
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc.aio

from coordinator.runtime.audit import NO_AUDIT, Audit
from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.runtime import Runtime
from coordinator.runtime.trips.trips import Trips
from coordinator.service.admin.upstream.upstream_administration import UpstreamAdministration
from coordinator.service.credentials.authentication import Authenticate
from coordinator.service.credentials.server_tls import ServerTls
from coordinator.service.ends.end_offsets import EndOffsets
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.caller import INTERNAL
from model.commands.groups import ConsumerGroupDescribe
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, TopicId, TopicName
from model.responses.groups import ConsumerGroupDescribeResponse, DescribedMember
from muster.v1 import admin_pb2_grpc, classic_pb2_grpc, group_pb2_grpc
from security.quotas.address_limits import NO_LIMIT, AddressLimits
from security.quotas.client_quotas import ClientQuotas
from tests.support.memory import MemoryLogStore
from tests.support.waiting import until_answered

WAIT_S = 30.0


@dataclass
class Stand:
    """A running server, listening on ``target``. ``restart`` keeps the log and the port."""

    runtime: Runtime
    server: GrpcServer
    port: int
    store: MemoryLogStore
    settings: CoordinatorSettings
    grpc_settings: GrpcSettings
    authorizer: Authorizer
    tls: ServerTls | None = None
    authenticate: Authenticate | None = None
    channels: list[grpc.aio.Channel] = field(default_factory=list)

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def channel(self) -> grpc.aio.Channel:
        """Open a separate connection."""
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1))
        channel = grpc.aio.insecure_channel(self.target, options=options)
        self.channels.append(channel)
        return channel

    def group_stub(self) -> group_pb2_grpc.GroupServiceAsyncStub:
        return group_pb2_grpc.GroupServiceStub(self.channel())

    def classic_stub(self) -> classic_pb2_grpc.ClassicServiceAsyncStub:
        return classic_pb2_grpc.ClassicServiceStub(self.channel())

    def admin_stub(self) -> admin_pb2_grpc.AdminServiceAsyncStub:
        return admin_pb2_grpc.AdminServiceStub(self.channel())

    async def create_topic(self, name: str, partitions: int) -> TopicId:
        topic_id = TopicId(uuid.uuid4().bytes)
        await self.runtime.call(CreateTopic(INTERNAL, TopicName(name), topic_id, partitions))
        return topic_id

    async def members(self, group_id: str) -> dict[str, DescribedMember]:
        """The members of a group by id; empty if the group does not exist."""
        command = ConsumerGroupDescribe(INTERNAL, (GroupId(group_id),))
        response = await self.runtime.call(command)
        assert isinstance(response, ConsumerGroupDescribeResponse)
        return {member.member_id: member for member in response.groups[0].members}

    async def until_empty(self, group_id: str) -> None:
        """Wait until the group has no members."""
        await until_answered(
            lambda: self.members(group_id), operator.not_, f"{group_id} has no members"
        )

    async def stop_server(self) -> None:
        await self.server.stop(0.5)
        await self.runtime.stop()

    async def restart(self) -> None:
        """Start the server again after ``stop_server``, on the same log and port."""
        self.runtime, self.server = _make(
            self.store,
            self.settings,
            self.grpc_settings,
            self.authorizer,
            quotas=None,
            sessions_per_ip=NO_LIMIT,
            tls=self.tls,
            authenticate=self.authenticate,
        )
        await self.runtime.start()
        self.port = await self.server.start("127.0.0.1", self.port)

    async def close(self) -> None:
        for channel in self.channels:
            await channel.close(None)
        await self.stop_server()


def _make(
    store: MemoryLogStore,
    settings: CoordinatorSettings,
    grpc_settings: GrpcSettings,
    authorizer: Authorizer,
    *,
    quotas: ClientQuotas | None,
    sessions_per_ip: AddressLimits,
    tls: ServerTls | None,
    authenticate: Authenticate | None,
    upstream: UpstreamAdministration | None = None,
    end_offsets: EndOffsets | None = None,
    audit: Audit = NO_AUDIT,
    trips: Trips | None = None,
) -> tuple[Runtime, GrpcServer]:
    quotas = quotas if quotas is not None else ClientQuotas()
    runtime = Runtime(store, settings, authorizer=authorizer, quotas=quotas.index, trips=trips)
    server = GrpcServer(
        runtime,
        authorizer,
        grpc_settings,
        quotas=quotas,
        sessions_per_ip=sessions_per_ip,
        tls=tls,
        authenticate=authenticate,
        upstream=upstream,
        end_offsets=end_offsets,
        audit=audit,
        trips=trips,
    )
    return runtime, server


@asynccontextmanager
async def running_stand(
    *,
    session_timeout_ms: int = 45_000,
    heartbeat_interval_ms: int = 5_000,
    min_session_timeout_ms: int = 45_000,
    min_classic_session_timeout_ms: int = 6_000,
    initial_rebalance_delay_ms: int = 3_000,
    protocols: tuple[str, ...] = ("classic", "consumer"),
    grpc_settings: GrpcSettings | None = None,
    authorizer: Authorizer | None = None,
    quotas: ClientQuotas | None = None,
    sessions_per_ip: AddressLimits = NO_LIMIT,
    tls: ServerTls | None = None,
    authenticate: Authenticate | None = None,
    upstream: UpstreamAdministration | None = None,
    end_offsets: EndOffsets | None = None,
    audit: Audit = NO_AUDIT,
    trips: Trips | None = None,
) -> AsyncIterator[Stand]:
    """A server that runs, with one topic ``orders`` of four partitions."""
    settings = CoordinatorSettings(
        group_consumer_session_timeout_ms=session_timeout_ms,
        group_consumer_min_session_timeout_ms=min_session_timeout_ms,
        group_consumer_heartbeat_interval_ms=heartbeat_interval_ms,
        group_min_session_timeout_ms=min_classic_session_timeout_ms,
        group_initial_rebalance_delay_ms=initial_rebalance_delay_ms,
        group_coordinator_rebalance_protocols=protocols,
    )
    chosen = grpc_settings or GrpcSettings()
    store = MemoryLogStore(4)
    allowing = authorizer or AllowAll()
    runtime, server = _make(
        store,
        settings,
        chosen,
        allowing,
        quotas=quotas,
        sessions_per_ip=sessions_per_ip,
        tls=tls,
        authenticate=authenticate,
        upstream=upstream,
        end_offsets=end_offsets,
        audit=audit,
        trips=trips,
    )
    await runtime.start()
    await runtime.loaded()
    port = await server.start("127.0.0.1", 0)
    stand = Stand(runtime, server, port, store, settings, chosen, allowing, tls, authenticate)
    await stand.create_topic("orders", 4)
    try:
        yield stand
    finally:
        await stand.close()
