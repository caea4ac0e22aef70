"""A relay between a client and a fake broker, all over sockets."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from gateway.rewriting.naming import OwnNode
from model.places import Place
from tests.support.upstream.fake_cluster import FakeBroker, FakeCluster
from tests.support.wire.frames import make_frame, parse
from upstream.relay.relay_places import CONSUMER_PROTOCOL
from upstream.relay.relay_settings import RelaySettings
from upstream.relay.relays import Relays
from upstream.statistics import UpstreamStatistics

OWN = OwnNode(2**30 + 1, "127.0.0.1", 9092)


class FakePlaces:
    """Where groups are; ``taken`` are those that ``asks_to_take`` takes when they are joined."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.taken: set[str] = set()
        self.elsewhere: set[str] = set()
        self.asked: list[tuple[str, str]] = []
        self.known: set[tuple[str, str]] = set()
        self.awaited: set[tuple[str, str]] = set()
        self.joined: list[tuple[str, str]] = []

    def is_elsewhere(self, group_id: str) -> bool:
        return group_id in self.elsewhere

    def find_place(self, group_id: str) -> Place:
        return self.places.get(group_id, Place.UPSTREAM)

    def may_take(self, group_id: str, cause: str) -> bool:
        return cause == CONSUMER_PROTOCOL or group_id in self.taken

    def asks_to_take(self, group_id: str, cause: str) -> bool:
        self.asked.append((group_id, cause))
        return group_id in self.taken

    def meets_former_member(self, group_id: str, member_id: str) -> bool:
        return (group_id, member_id) in self.known

    def awaits_member(self, group_id: str, member_id: str) -> bool:
        return (group_id, member_id) in self.awaited

    def note_joined(self, group_id: str, member_id: str) -> None:
        self.joined.append((group_id, member_id))


class Client:
    """A connection to a relay."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._correlation_id = 0

    def send(self, key: int, version: int, /, **fields: Any) -> int:
        self._correlation_id += 1
        number = self._correlation_id
        self.writer.write(make_frame(key, version, correlation_id=number, **fields))
        return number

    async def read_frame(self) -> bytes:
        async with asyncio.timeout(20):
            size = await self.reader.readexactly(4)
            return size + await self.reader.readexactly(int.from_bytes(size, "big"))

    async def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        number = self.send(key, version, **fields)
        answered, response = parse(key, version, (await self.read_frame())[4:])
        assert answered == number
        return response

    async def is_closed(self) -> bool:
        async with asyncio.timeout(20):
            try:
                return await self.reader.read(1) == b""
            except ConnectionError:
                return True


class Rig:
    """Relays with one broker, whose node id is 1."""

    def __init__(
        self,
        cluster: FakeCluster,
        broker: FakeBroker,
        places: FakePlaces,
        relays: Relays,
        changes: list[None],
        statistics: UpstreamStatistics,
    ) -> None:
        self.statistics = statistics
        self.changes = changes
        self.cluster = cluster
        self.broker = broker
        self.places = places
        self.relays = relays
        self.clients: list[Client] = []

    async def connect(self, node_id: int = 1, **options: Any) -> Client:
        address = self.relays.address_of(node_id)
        assert address is not None
        client = Client(*await asyncio.open_connection(*address, limit=2**22, **options))
        self.clients.append(client)
        return client


def find_ports(count: int) -> range:
    """Neighbouring ports that are free now; below those that the kernel gives out by itself.

    Random, because tests of other processes look for ports as well.
    """
    starts = range(20_000, 32_000, 10)
    for start in random.sample(starts, len(starts)):
        try:
            for port in range(start, start + count):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return range(start, start + count)
    raise AssertionError("no free ports")


@asynccontextmanager
async def run_relays(
    answer: Callable[[bytes], bytes | None] = lambda frame: None,
    brokers: tuple[int, ...] = (1,),
    **settings: Any,
) -> AsyncIterator[Rig]:
    broker = FakeBroker(answer)
    await broker.start()
    cluster = FakeCluster()
    changes: list[None] = []
    statistics = UpstreamStatistics()
    cluster.set_brokers(dict.fromkeys(brokers, broker.port))
    places = FakePlaces()
    options = {"own": OWN, "ports": find_ports(3), "bind_host": "127.0.0.1"} | settings
    relays = Relays(
        cluster,  # type: ignore[arg-type]
        places,
        RelaySettings(**options),  # type: ignore[arg-type]
        statistics,
        lambda: changes.append(None),
    )
    rig = Rig(cluster, broker, places, relays, changes, statistics)
    try:
        await relays.start()
        yield rig
    finally:
        for client in rig.clients:
            client.writer.transport.abort()
        await relays.stop()
        await broker.stop()
