"""A Kafka server on a loopback socket over a real coordinator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.runtime import Runtime
from coordinator.runtime.trips.trips import Trips
from gateway.api import Api
from gateway.apis.api_registry import APIS
from gateway.fronting.front import Front
from gateway.settings import GatewaySettings
from gateway.topics.topic_catalogue import Broker, PartitionKey, PartitionLeader
from gateway.wire_server import KafkaServer
from model.caller import INTERNAL
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import TopicId, TopicName
from model.topics import Topic, TopicImage
from security.quotas.client_quotas import ClientQuotas
from tests.support.memory import MemoryLogStore
from tests.support.wire.connection import Connection

HEARTBEAT = 68


class NoRecords:
    """A catalogue of the coordinator's topics, all led here, without records."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def image(self) -> TopicImage:
        return self._runtime.image

    def brokers(self) -> Sequence[Broker]:
        return ()

    @property
    def fetch_max_bytes(self) -> int:
        return 0

    def leader_of(self, key: PartitionKey) -> PartitionLeader:
        return PartitionLeader(None, 0)

    def leaders_of(self, topic: Topic) -> Sequence[PartitionLeader]:
        return [PartitionLeader(None, 0)] * topic.partitions

    def topic_configs(self, _: TopicId) -> Mapping[str, str]:
        return {"cleanup.policy": "delete", "retention.ms": "-1"}


def topic_id_of(name: str) -> TopicId:
    """The same id for the same name in every run."""
    return TopicId(name.encode().ljust(16, b"\x01")[:16])


class Rig:
    """The parts of a running server."""

    def __init__(self, runtime: Runtime, server: KafkaServer, port: int) -> None:
        self.runtime = runtime
        self.server = server
        self.port = port

    async def create_topic(self, name: str, partitions: int) -> TopicId:
        topic_id = topic_id_of(name)
        await self.runtime.call(CreateTopic(INTERNAL, TopicName(name), topic_id, partitions))
        return topic_id

    async def connect(self) -> Connection:
        return await Connection.open(f"127.0.0.1:{self.port}")


@asynccontextmanager
async def run_rig(
    settings: GatewaySettings | None = None,
    coordinator: CoordinatorSettings | None = None,
    authorizer: Authorizer | None = None,
    apis: tuple[Api, ...] = APIS,
    clock: Any = None,
    quotas: ClientQuotas | None = None,
    is_loaded: bool = True,
    front: Front | None = None,
    trips: Trips | None = None,
) -> AsyncIterator[Rig]:
    """A server over a coordinator in memory, stopped at the end."""
    quotas = quotas if quotas is not None else ClientQuotas()
    runtime = Runtime(
        MemoryLogStore(50),
        coordinator or CoordinatorSettings(),
        authorizer=authorizer,
        quotas=quotas.index,
        trips=trips,
    )
    await runtime.start()
    if is_loaded:
        await runtime.loaded()
    server = KafkaServer(
        runtime,
        authorizer or AllowAll(),
        NoRecords(runtime),  # type: ignore[arg-type]
        settings or GatewaySettings(),
        apis=apis,
        quotas=quotas,
        clock=clock,
        front=front,
        trips=trips,
    )
    port = await server.start("127.0.0.1", 0)
    try:
        yield Rig(runtime, server, port)
    finally:
        await server.stop()
        await runtime.stop()


def with_settings(**changes: Any) -> GatewaySettings:
    """Settings with some changed."""
    return replace(GatewaySettings(), **changes)
