"""A whole server in this process, without sockets.

Gateway, coordinator and the RocksDB store are the real ones; the event loop has virtual time and
no I/O (`tests.cost`), and does the work of other threads itself. The CPU time of this process is
that of the server, including RocksDB's own threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.growth.states import GROUP
from cli.serve.collector import GarbageCollector
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from gateway.settings import GatewaySettings
from model.commands.command import Command
from model.ids import GroupId
from storage.log_store import LogStore
from tests.cost.server import AT_REST, CostServer, is_whole


class Rig:
    """A server on a store, which requests and commands reach at once."""

    def __init__(self, folder: Path, store: LogStore) -> None:
        settings = replace(AT_REST, group_initial_rebalance_delay_ms=0)
        self._garbage = GarbageCollector()
        self._garbage.hold()
        self.store = store
        self.server = CostServer(
            folder, settings=settings, gateway=GatewaySettings(gateway_park_ms=0), store=store
        )
        self._garbage.settle()

    def close(self) -> None:
        self.server.close()
        self.store.close()
        self._garbage.stop()

    def send(self, data: bytes) -> bytes:
        """The response to a request, with its size."""
        loop, door = self.server.loop, self.server.door
        door.transport.written, door._read = b"", 0
        loop.call_soon(door.send, data)
        loop.run_while(lambda: not is_whole(door))
        return door.transport.written

    def send_together(self, data: bytes, count: int) -> int:
        """Send `count` requests that share a write to the disk; returns when all are answered."""
        loop, door = self.server.loop, self.server.door
        door.transport.written, door._read = b"", 0
        answered = 0

        def is_waiting() -> bool:
            nonlocal answered
            answered += len(door.frames())
            return answered < count

        loop.call_soon(door.send, data)
        loop.run_while(is_waiting)
        return count

    def call(self, command: Command) -> Any:
        return self.server.call(command)

    def find_group(self, group_id: GroupId) -> ConsumerGroup:
        return self.server.runtime._shard_of(group_id).consumer_groups[group_id]

    def end_cooldown(self, group_id: GroupId = GROUP) -> None:
        """Forget that the group has just got a target: its members have not followed here."""
        self.server.runtime.parts.targets._waits.forget(group_id)

    def settle(self, group_id: GroupId = GROUP) -> None:
        """Until the group's target is that of its epoch."""
        group = self.find_group(group_id)
        self.server.loop.run_while(lambda: group.target_epoch < group.group_epoch)


@contextmanager
def rig(folder: Path, store: LogStore) -> Iterator[Rig]:
    made = Rig(folder, store)
    try:
        yield made
    finally:
        made.close()
