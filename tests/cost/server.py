"""A whole server on a loop that counts: coordinator, topics, and both doors without sockets."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.runtime import Runtime
from coordinator.runtime.trips.trips import Trips
from gateway.quotas.metered_connection import meter
from gateway.settings import GatewaySettings
from gateway.topics.local_topics import LocalTopics
from gateway.topics.settings import TopicSettings
from gateway.traces.traced_routes import TracedRoutes
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import TopicId, TopicName
from security.quotas.client_quotas import ClientQuotas
from tests.cost.turns import Counted, CountedLoop, LoopScheduler
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.memory import MemoryLogStore
from tests.support.virtual.server import quiet_logs
from tests.support.wire.frames import frame, make_request

AT_REST: Final = CoordinatorSettings(
    log_checkpoint_interval_ms=2**31 - 1, log_checkpoint_keys=2**31 - 1
)
"""Without checkpoints, whose slices would fall into some of the turns that are compared."""


def topic_id_of(name: str) -> TopicId:
    """The same id for the same name in every run."""
    return TopicId(name.encode().rjust(16, b"\x01")[-16:])


class CostServer:
    """``ask`` is answered before it returns; ``count`` says what that takes."""

    def __init__(
        self,
        folder: Path,
        settings: CoordinatorSettings | None = None,
        gateway: GatewaySettings | None = None,
        store: Any = None,
        authorizer: Authorizer | None = None,
        quotas: ClientQuotas | None = None,
        trips: Trips | None = None,
    ) -> None:
        quiet_logs()
        self.loop = CountedLoop()
        self.scheduler = LoopScheduler(self.loop)
        self.settings = settings or AT_REST
        self.authorizer = authorizer or AllowAll()
        self.quotas = quotas if quotas is not None else ClientQuotas()
        self.store = store or MemoryLogStore(4)
        self.runtime = Runtime(
            self.store,
            self.settings,
            clock=self.scheduler,
            scheduler=self.scheduler,
            on_failure=self._fail,
            authorizer=self.authorizer,
            quotas=self.quotas.index,
            trips=trips,
        )
        self.loop.complete(self._start())
        clock: Any = self.loop
        self.gateway = Gateway(
            gateway or GatewaySettings(),
            self.authorizer,
            coordinator=self.runtime,
            clock=clock,
            quotas=self.quotas,
        )
        if trips is not None:
            self.gateway.shared.routes = TracedRoutes(self.gateway.shared.routes, trips)
        with self._on_loop():
            self.topics = LocalTopics(
                folder, self.runtime, TopicSettings(), wall_ms=self.scheduler.wall_ms
            )
            self.topics.lift_end_offsets({})
        self.loop.complete(self.topics.start())
        object.__setattr__(self.gateway.shared.node, "topics", self.topics)
        self.door: Door = self.gateway.connect()

    def meter_door(self) -> None:
        """Requests are looked at for quotas from now on."""
        meter(self.door.connection, self.quotas)

    def _fail(self, failure: BaseException) -> None:
        raise failure

    async def _start(self) -> None:
        await self.runtime.start()
        await self.runtime.loaded()

    @contextmanager
    def _on_loop(self) -> Iterator[None]:
        asyncio._set_running_loop(self.loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def close(self) -> None:
        """What has files and threads."""
        self.loop.complete(self.topics.stop())
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.close()

    # -------------------------------------------------------------------------------- commands

    def call(self, command: Command) -> Any:
        """The answer of the coordinator."""
        return self.loop.complete(self.runtime.call(command))

    def call_all(self, commands: Iterable[Command]) -> None:
        """All at once."""
        answers: list[Answer] = []
        count = 0
        for command in commands:
            self.runtime.submit(command, answers.append)
            count += 1
        self.loop.run_while(lambda: len(answers) < count)
        wrong = [answer for answer in answers if isinstance(answer, GroupError)]
        assert not wrong, wrong[0]

    def create(self, partitions: int, *names: str) -> None:
        """Topics."""
        self.call_all(
            CreateTopic(INTERNAL, TopicName(name), topic_id_of(name), partitions) for name in names
        )

    # -------------------------------------------------------------------------------- requests

    def count(self, key: int, version: int, /, **fields: Any) -> Counted:
        """What one request costs from its first byte to the last of its answer."""
        data = frame(key, version, 7, make_request(key, version, **fields))
        door = self.door
        door.transport.written, door._read = b"", 0
        counted = self.loop.count(lambda: door.send(data), lambda: is_whole(door))
        counted.kept = list(door.answers(key, version))
        return counted

    def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        """The answer."""
        data = frame(key, version, 7, make_request(key, version, **fields))
        door = self.door
        door.transport.written, door._read = b"", 0
        self.loop.call_soon(door.send, data)
        self.loop.run_while(lambda: not is_whole(door))
        return door.answers(key, version)[0][1]


def is_whole(door: Door) -> bool:
    written = door.transport.written
    return len(written) >= 4 and len(written) >= 4 + int(struct.unpack_from(">i", written)[0])


@contextmanager
def cost_server(folder: Path, **options: Any) -> Iterator[CostServer]:
    """A server, closed at the end."""
    server = CostServer(folder, **options)
    try:
        yield server
    finally:
        server.close()
