"""Watches of groups: of one that is large, and of one that very many watch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import grpc

from coordinator.runtime.api import ignore_answer
from coordinator.service.settings import GrpcSettings
from muster.v1 import admin_pb2
from tests.cost.server import CostServer, cost_server
from tests.cost.test_apis import G
from tests.cost.test_rpcs import make_services
from tests.cost.test_starts import AT_REST, join, make_one_group
from tests.cost.turns import Counted, check_law

WATCHES_MAX: Final = GrpcSettings().grpc_watches_max
MEMBERS_MAX: Final = 800


class Stream:
    """The server's side of a stream: it counts what is told."""

    def __init__(self) -> None:
        self.told = 0

    def peer(self) -> str:
        return "ipv4:127.0.0.1:50000"

    async def send_initial_metadata(self, metadata: object) -> None:
        pass

    async def write(self, message: admin_pb2.WatchGroupResponse | bytes) -> None:
        self.told += isinstance(message, bytes)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing: Any = ()) -> None:
        raise AssertionError(details)


class Watches:
    """Streams that watch one group."""

    def __init__(self, server: CostServer, count: int) -> None:
        self.streams = [Stream() for _ in range(count)]
        with server._on_loop():
            service = make_services(server)["AdminService"]
            request = admin_pb2.WatchGroupRequest(group_id=G)
            self.tasks = [
                server.loop.create_task(service.WatchGroup(request, stream))
                for stream in self.streams
            ]

    def are_told(self, times: int) -> bool:
        assert not any(task.done() for task in self.tasks)
        return all(stream.told >= times for stream in self.streams)

    def end(self, server: CostServer) -> None:
        for task in self.tasks:
            task.cancel()
        server.loop.run_while(lambda: not all(task.done() for task in self.tasks))


def test_a_look_is_linear_in_the_group_and_has_short_turns(tmp_path: Path) -> None:
    def measure(n: int) -> Counted:
        with cost_server(tmp_path / str(n), settings=AT_REST) as server:
            make_one_group(server, n)
            made: list[Watches] = []
            counted = server.loop.count(
                lambda: made.append(Watches(server, 1)),
                lambda: bool(made) and made[0].are_told(1),
            )
            made[0].end(server)
            return counted

    check_law(measure, MEMBERS_MAX // 4, MEMBERS_MAX)


def test_a_change_is_linear_in_the_watchers_and_has_short_turns(tmp_path: Path) -> None:
    described: list[int] = []

    def measure(n: int) -> Counted:
        with cost_server(tmp_path / str(n), settings=AT_REST) as server:
            make_one_group(server, 10)
            watches = Watches(server, n)
            server.loop.run_while(lambda: not watches.are_told(1))
            described.append(server.runtime.stats.commands["ConsumerGroupDescribe"])
            counted = server.loop.count(
                lambda: server.runtime.submit(join(G, "m10"), ignore_answer),
                lambda: watches.are_told(2),
            )
            described[-1] = server.runtime.stats.commands["ConsumerGroupDescribe"] - described[-1]
            watches.end(server)
            return counted

    check_law(measure, WATCHES_MAX // 8, WATCHES_MAX)
    assert set(described) == {1}, "one description for all who watch"
