"""A cluster of scripted brokers on real sockets, which answer by a table.

async with FakeCluster(3) as cluster:
    cluster[1].answers[DESCRIBE_GROUPS] = lambda asked: {"groups": ({"group_id": "g"},)}
    settings = ClusterSettings(cluster.addresses)

ApiVersions, Metadata and FindCoordinator are answered without being told to. kio encodes and
decodes, so that a codec of the server that is wrong in both directions is detected.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Self, TypeAlias

from kio.serial import entity_reader

from gateway.codec.client_frames import known_versions
from gateway.codec.kio_schema import compute_fields, request_type, response_type
from tests.support.wire.codec import decode, encode
from tests.support.wire.frames import make_entity

HOST = "127.0.0.1"
METADATA, FIND_COORDINATOR, API_VERSIONS, HANDSHAKE, AUTHENTICATE = 3, 10, 18, 17, 36
NOT_COORDINATOR, UNSUPPORTED_VERSION, COORDINATOR_NOT_AVAILABLE = 16, 35, 15
ILLEGAL_SASL_STATE = 34
_SIZE_MAX = 100 * 1024 * 1024
"""As Kafka's: the first bytes of TLS are a greater one."""
SERVED = (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 25, 26, 28, 29, 36,
          42, 47, 60)  # fmt: skip


class Act(Enum):
    """What a broker may do instead of answering."""

    SILENCE = auto()
    """This request is never answered, and none after it on the connection."""
    CLOSE = auto()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request; ``connection`` numbers the connections of a broker."""

    broker: FakeBroker
    connection: int
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    request: Any


Answer: TypeAlias = Mapping[str, Any] | bytes | Act
"""Fields of the response, or bytes that are sent as they are."""
Handler: TypeAlias = Callable[[Asked], Any]
"""Gives an ``Answer``, or a coroutine that does."""


@dataclass(eq=False)
class FakeBroker:
    """``answers`` is the table; ``asked`` what has come so far, ``open`` the connections.

    ``on_connection`` may answer a connection with bytes before it has sent anything.
    """

    node_id: int
    cluster: FakeCluster
    tls: ssl.SSLContext | None = None
    answers: dict[int, Handler] = field(default_factory=dict)
    versions: dict[int, range] = field(
        default_factory=lambda: {key: known_versions(key) for key in SERVED}
    )
    features: dict[str, int] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    open: dict[int, asyncio.Task[Any]] = field(default_factory=dict)
    connections: int = 0
    greeting: bytes = b""
    port: int = 0
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen; again on the same port after ``stop``."""
        self._server = await asyncio.start_server(self._serve, HOST, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        # A connection may have been accepted just now, and an aborted one closes its socket in the
        # iteration after.
        await asyncio.sleep(0)
        self.cut()
        if self.open:
            await asyncio.wait(self.open.values())
        await asyncio.sleep(0)

    def cut(self) -> None:
        """Close all connections."""
        for task in self.open.values():
            task.cancel()

    def count(self, key: int) -> int:
        """How many requests of an API have come."""
        return sum(asked.key == key for asked in self.asked)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        task = asyncio.current_task()
        assert task is not None
        self.open[number] = task
        try:
            writer.write(self.greeting)
            while await self._serve_one(number, reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            del self.open[number]
            writer.transport.abort()

    async def _serve_one(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        if not 8 <= size <= _SIZE_MAX:
            return False
        asked = self._parse(number, await reader.readexactly(size))
        if asked is None:
            return False
        self.asked.append(asked)
        answer = self._answer(asked)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is Act.SILENCE:
            await reader.read()
            return False
        if answer is Act.CLOSE:
            return False
        writer.write(answer if isinstance(answer, bytes) else make_response(asked, answer))
        await writer.drain()
        return True

    def _parse(self, number: int, data: bytes) -> Asked | None:
        key, version, correlation_id = struct.unpack_from(">hhi", data)
        if version not in self.versions.get(key, ()):
            if key != API_VERSIONS:
                return None
            return Asked(self, number, key, version, correlation_id, None, None)
        target = request_type(key, version)
        header, start = entity_reader(target.__header_schema__)(data, 0)
        request = decode(target, data, start)
        client_id = getattr(header, "client_id", None)
        return Asked(self, number, key, version, correlation_id, client_id, request)

    def _answer(self, asked: Asked) -> Any:
        handler = self.answers.get(asked.key) or _DEFAULTS.get(asked.key)
        return Act.CLOSE if handler is None else handler(asked)


def make_response(asked: Asked, fields: Mapping[str, Any]) -> bytes:
    """The frame of a response, size included."""
    version = asked.version
    if asked.key == API_VERSIONS and fields.get("error_code") == UNSUPPORTED_VERSION:
        version = 0
    target = response_type(asked.key, version)
    names = {row.name for row in compute_fields(target)}
    entity = make_entity(target, {name: fields[name] for name in fields if name in names})
    header = target.__header_schema__
    data = encode(header, header(correlation_id=asked.correlation_id)) + encode(target, entity)
    return struct.pack(">i", len(data)) + data


def _answer_versions(asked: Asked) -> Answer:
    keys = tuple(
        {"api_key": key, "min_version": served[0], "max_version": served[-1]}
        for key, served in asked.broker.versions.items()
    )
    if asked.request is None:
        return {"error_code": UNSUPPORTED_VERSION, "api_keys": keys}
    features = tuple(
        {"name": name, "min_version_level": level, "max_version_level": level}
        for name, level in asked.broker.features.items()
    )
    return {"api_keys": keys, "finalized_features": features}


def _answer_metadata(asked: Asked) -> Answer:
    cluster = asked.broker.cluster
    brokers = tuple(
        {"node_id": each.node_id, "host": HOST, "port": each.port}
        for each in cluster.brokers.values()
    )
    return {
        "brokers": brokers,
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller_id,
    }


def _answer_find(asked: Asked) -> Answer:
    cluster = asked.broker.cluster
    group_id = getattr(asked.request, "key", None) or asked.request.coordinator_keys[0]
    node_id = cluster.coordinators.get(group_id, min(cluster.brokers))
    found = cluster.brokers.get(node_id)
    fields = (
        {"error_code": COORDINATOR_NOT_AVAILABLE, "node_id": -1, "host": "", "port": -1}
        if found is None
        else {"node_id": node_id, "host": HOST, "port": found.port}
    )
    return {**fields, "coordinators": ({"key": group_id, **fields},)}


_DEFAULTS: dict[int, Handler] = {
    API_VERSIONS: _answer_versions,
    METADATA: _answer_metadata,
    FIND_COORDINATOR: _answer_find,
}


class FakeCluster:
    """Brokers 1 to ``brokers``; ``coordinators``: broker by group, the first for all others."""

    def __init__(self, brokers: int = 1, tls: ssl.SSLContext | None = None) -> None:
        self.cluster_id: str | None = "fake-cluster"
        self.controller_id = 1
        self.coordinators: dict[str, int] = {}
        self.brokers = {node: FakeBroker(node, self, tls) for node in range(1, brokers + 1)}

    async def __aenter__(self) -> Self:
        for broker in self.brokers.values():
            await broker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker in self.brokers.values():
            await broker.stop()

    def __getitem__(self, node_id: int) -> FakeBroker:
        return self.brokers[node_id]

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Of all brokers, to begin with."""
        return tuple((HOST, broker.port) for broker in self.brokers.values())

    def answer(self, key: int, handler: Handler) -> None:
        """At every broker."""
        for broker in self.brokers.values():
            broker.answers[key] = handler

    def count(self, key: int) -> int:
        """How many requests of an API have come to all brokers."""
        return sum(broker.count(key) for broker in self.brokers.values())
