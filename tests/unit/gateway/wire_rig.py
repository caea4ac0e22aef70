"""A Kafka server on a loopback socket over a real coordinator, and a client that speaks bytes."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.runtime import Runtime
from gateway.api import Api
from gateway.apis.api_registry import APIS
from gateway.codec.decoding import decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import request_type, response_type
from gateway.settings import GatewaySettings
from gateway.topics.topic_catalogue import Broker, PartitionKey, PartitionLeader
from gateway.wire_server import KafkaServer
from model.commands import INTERNAL, CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import TopicId, TopicName
from model.topics import Topic, TopicImage
from tests.support.memory import MemoryLogStore

HEARTBEAT = 68
PATIENCE_S = 30.0
"""For what comes at once on a machine that does not stand still."""


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

    async def connect(self) -> WireClient:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        return WireClient(reader, writer)


@asynccontextmanager
async def run_rig(
    settings: GatewaySettings | None = None,
    coordinator: CoordinatorSettings | None = None,
    authorizer: Authorizer | None = None,
    apis: tuple[Api, ...] = APIS,
    clock: Any = None,
    is_loaded: bool = True,
) -> AsyncIterator[Rig]:
    """A server over a coordinator in memory, stopped at the end."""
    runtime = Runtime(
        MemoryLogStore(50), coordinator or CoordinatorSettings(), authorizer=authorizer
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
        clock=clock,
    )
    port = await server.start("127.0.0.1", 0)
    try:
        yield Rig(runtime, server, port)
    finally:
        await server.stop()
        await runtime.stop()


def frame(key: int, version: int, correlation_id: int, request: Any, client_id: str = "c") -> bytes:
    """A whole request: size, header, body. ``request`` is an entity or the bytes of a body."""
    target = request_type(key, version)
    body = request if isinstance(request, bytes) else encode(target, request)
    name = client_id.encode()
    header = struct.pack(">hhih", key, version, correlation_id, len(name)) + name
    if target.__header_schema__.__flexible__:
        header += b"\x00"
    return struct.pack(">i", len(header) + len(body)) + header + body


class WireClient:
    """One connection that sends entities and reads entities."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.correlation_id = 0

    async def __aenter__(self) -> WireClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def send(self, key: int, version: int, /, **fields: Any) -> int:
        """Send a request; fields that are not given have their defaults. The correlation id."""
        self.correlation_id += 1
        request = make_request(key, version, **fields)
        self.writer.write(frame(key, version, self.correlation_id, request))
        return self.correlation_id

    async def read_frame(self, timeout_s: float = PATIENCE_S) -> bytes:
        async with asyncio.timeout(timeout_s):
            size = struct.unpack(">i", await self.reader.readexactly(4))[0]
            return await self.reader.readexactly(size)

    async def read(self, key: int, version: int, timeout_s: float = PATIENCE_S) -> tuple[int, Any]:
        """The next answer as (correlation id, entity)."""
        return parse(key, version, await self.read_frame(timeout_s))

    async def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        """Send and read the answer."""
        sent = self.send(key, version, **fields)
        correlation_id, response = await self.read(key, version)
        assert correlation_id == sent
        return response

    async def is_closed(self, timeout_s: float = PATIENCE_S) -> bool:
        """Whether the server closes the connection in time, having sent nothing more."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self.reader.read(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


def parse(key: int, version: int, data: bytes) -> tuple[int, Any]:
    """(correlation id, entity) of an answer."""
    target = response_type(key, version)
    pos = 5 if target.__header_schema__.__flexible__ else 4
    entity = decode(target, data, pos, len(data), 10_000_000)
    return struct.unpack_from(">i", data)[0], entity


def make_request(key: int, version: int, /, **fields: Any) -> Any:
    """A request entity; what is not given is the default of its type."""
    from gateway.codec.kio_schema import compute_fields

    target = request_type(key, version)
    values = {row.name: row.default for row in compute_fields(target)}
    return target(**(values | fields))


def join(group: str, member: str, topics: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    """The fields of a heartbeat that joins."""
    return {
        "group_id": group,
        "member_id": member,
        "member_epoch": 0,
        "rebalance_timeout": 300_000,
        "subscribed_topic_names": topics,
        "topic_partitions": (),
        **fields,
    }


def beat(group: str, member: str, epoch: int, **fields: Any) -> dict[str, Any]:
    """The fields of a heartbeat that says nothing but that the member is there."""
    return {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "rebalance_timeout": -1,
        "subscribed_topic_names": None,
        "topic_partitions": None,
        **fields,
    }


def with_settings(**changes: Any) -> GatewaySettings:
    """Settings with some changed."""
    return replace(GatewaySettings(), **changes)
