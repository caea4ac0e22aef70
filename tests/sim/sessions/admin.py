"""An administrator with a good connection: topics and settings of groups, over the real service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import grpc
import grpc.aio

from muster.v1 import admin_pb2, admin_pb2_grpc
from tests.sim.sessions.ledger import Ledger
from tests.sim.sessions.links.channel import SimChannel
from tests.sim.sessions.links.network import Network

_RETRY_S = 0.2
_TIMEOUT_S = 5.0
_DONE = frozenset({grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.NOT_FOUND})
"""An earlier try of the same request has done it."""

_RETRIABLE = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


class Administrator:
    """``settings_ms`` are all session timeouts that were ever in force for a group."""

    def __init__(self, network: Network, ledger: Ledger, note: Callable[[str], None]) -> None:
        self._stub = admin_pb2_grpc.AdminServiceStub(cast(grpc.aio.Channel, SimChannel(network)))
        self._ledger = ledger
        self._note = note
        self.topics: dict[str, int] = {}
        self.timeouts_ms: set[int] = set()
        self._busy: set[str] = set()

    async def create(self, name: str, partitions: int) -> None:
        """Returns when it is there."""
        await self._ask(
            self._stub.CreateTopic,
            admin_pb2.CreateTopicRequest(topic_name=name, num_partitions=partitions),
        )
        self.topics[name] = partitions
        self._ledger.note_created(name)
        self._note(f"admin: {name} is there")

    async def create_again(self, name: str, partitions: int, pause_s: float) -> None:
        """Deletes a topic and makes another one of its name."""
        if name in self._busy or name not in self.topics:
            return
        self._busy.add(name)
        self._ledger.begin_deletion(name)
        del self.topics[name]
        self._note(f"admin: deletes {name}")
        await self._ask(self._stub.DeleteTopic, admin_pb2.DeleteTopicRequest(topic_name=name))
        await asyncio.sleep(pause_s)
        await self.create(name, partitions)
        self._busy.discard(name)

    async def grow(self, name: str) -> None:
        """One partition more."""
        if name in self._busy or name not in self.topics:
            return
        self._busy.add(name)
        wanted = self.topics[name] + 1
        request = admin_pb2.GrowTopicRequest(topic_name=name, num_partitions=wanted)
        await self._ask(self._stub.GrowTopic, request, may_be_done=True)
        self.topics[name] = wanted
        self._note(f"admin: {name} has {wanted}")
        self._busy.discard(name)

    async def set_session_timeout(self, group: str, timeout_ms: int) -> None:
        """Of a group."""
        self.timeouts_ms.add(timeout_ms)
        change = admin_pb2.ConfigChange(name="consumer.session.timeout.ms", value=str(timeout_ms))
        request = admin_pb2.AlterGroupConfigsRequest(group_id=group, changes=[change])
        await self._ask(self._stub.AlterGroupConfigs, request)
        self._note(f"admin: {group} has {timeout_ms} ms")

    async def _ask(self, method: Any, request: Any, *, may_be_done: bool = False) -> None:
        """Until it is answered."""
        is_first = True
        while True:
            try:
                await method(request, timeout=_TIMEOUT_S)
                return
            except grpc.aio.AioRpcError as error:
                code = error.code()
                is_refused = may_be_done and code is grpc.StatusCode.INVALID_ARGUMENT
                if not is_first and (is_refused or code in _DONE):
                    return
                if code not in _RETRIABLE:
                    raise
                is_first = False
                await asyncio.sleep(_RETRY_S)
