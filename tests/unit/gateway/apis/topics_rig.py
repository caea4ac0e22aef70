"""A Kafka server with a topic store over a real coordinator, on a loopback socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.runtime import Runtime
from gateway.apis.api_registry import APIS
from gateway.apis.topics import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k19_create_topics,
    k20_delete_topics,
    k22_init_producer_id,
    k37_create_partitions,
    k75_describe_topic_partitions,
)
from gateway.settings import GatewaySettings
from gateway.topics.local_topics import LocalTopics
from gateway.topics.settings import TopicSettings
from gateway.wire_server import KafkaServer
from model.caller import INTERNAL
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import TopicId, TopicName
from storage.log_store import LogStore
from tests.support.memory import MemoryLogStore
from tests.support.wire.blocking import NamedClient

TOPIC_APIS = (
    k00_produce.API,
    k01_fetch.API,
    k02_list_offsets.API,
    k19_create_topics.API,
    k20_delete_topics.API,
    k22_init_producer_id.API,
    k37_create_partitions.API,
    k75_describe_topic_partitions.API,
)
_OTHERS = tuple(api for api in APIS if api.key not in {api.key for api in TOPIC_APIS})

T = TypeVar("T")


class TopicsRig:
    """The parts of a running server."""

    def __init__(
        self, runtime: Runtime, topics: LocalTopics, server: KafkaServer, port: int
    ) -> None:
        self.runtime = runtime
        self.topics = topics
        self.server = server
        self.port = port

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def create_topic(self, name: str, partitions: int = 1) -> TopicId:
        topic_id = TopicId(name.encode().ljust(16, b"\x01")[:16])
        await self.runtime.call(CreateTopic(INTERNAL, TopicName(name), topic_id, partitions))
        return topic_id

    def connect(self) -> NamedClient:
        """A blocking client: use it within ``run``."""
        return NamedClient(("127.0.0.1", self.port))

    async def ask(self, api: str, version: int, /, **fields: Any) -> dict[str, Any]:
        """One request on a connection of its own."""

        def ask() -> dict[str, Any]:
            with self.connect() as client:
                return client.ask(api, version, **fields)

        return await run(ask)


async def run(work: Callable[..., T], *arguments: Any) -> T:
    """Run blocking client code beside the server's loop."""
    return await asyncio.to_thread(work, *arguments)


@asynccontextmanager
async def run_topics(
    folder: Path,
    authorizer: Authorizer | None = None,
    log_store: LogStore | None = None,
    coordinator: CoordinatorSettings | None = None,
    **settings: Any,
) -> AsyncIterator[TopicsRig]:
    """A server over a coordinator in memory and a topic store in ``folder``."""
    runtime = Runtime(log_store or MemoryLogStore(50), coordinator or CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    topics = LocalTopics(folder, runtime, TopicSettings(log_min_free_bytes=0, **settings))
    await topics.start()
    server = KafkaServer(
        runtime, authorizer or AllowAll(), topics, GatewaySettings(), apis=(*_OTHERS, *TOPIC_APIS)
    )
    port = await server.start("127.0.0.1", 0)
    try:
        yield TopicsRig(runtime, topics, server, port)
    finally:
        await server.stop()
        await runtime.stop()
        await topics.stop()
