"""Finds the coordinators of groups in the cluster, and asks them until they have answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from gateway.codec.client_frames import ClientRequest
from upstream.cluster.cluster import (
    ClusterUnreachable,
    CoordinatorRefused,
    NotSent,
    NotServed,
)
from upstream.cluster.errors_in_answers import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
    wants_other_coordinator,
)

FIND_COORDINATOR: Final = 10
REMEMBERED_MAX: Final = 100_000
_PAUSE_S: Final = 0.05
_PAUSE_MAX_S: Final = 1.0
_PASSING: Final = (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


Ask: TypeAlias = Callable[[ClientRequest, int], Awaitable[Any]]
AskNode: TypeAlias = Callable[[int, ClientRequest, int], Awaitable[Any]]


class Coordinators:
    """What is remembered may be wrong: the broker says so then.

    ``ask`` asks any broker, ``ask_node`` this one once; the last argument is the time in ms.
    """

    def __init__(self, ask: Ask, ask_node: AskNode) -> None:
        self._ask = ask
        self._ask_node = ask_node
        self._remembered: dict[str, int] = {}

    async def find(self, group_id: str, *, again: bool, timeout_ms: int) -> int:
        """See ``Cluster.find_coordinator``."""
        if again:
            self._remembered.pop(group_id, None)
        known = self._remembered.get(group_id)
        if known is not None:
            return known
        node_id = await self._find(group_id, timeout_ms)
        if len(self._remembered) >= REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[group_id] = node_id
        return node_id

    async def _find(self, group_id: str, timeout_ms: int) -> int:
        fields = {"key": group_id, "key_type": 0, "coordinator_keys": (group_id,)}
        tries = _Tries(timeout_ms)
        while True:
            answer = await self._ask(ClientRequest(FIND_COORDINATOR, fields), tries.left_ms)
            found = getattr(answer, "coordinators", (answer,))
            if not found:
                raise ClusterUnreachable("FindCoordinator was answered with nothing")
            code = found[0].error_code
            if not code:
                return int(found[0].node_id)
            if code not in _PASSING:
                said = getattr(found[0], "error_message", None) or f"error {code}"
                raise CoordinatorRefused(code, f"the coordinator of {group_id}: {said}")
            if not await tries.pause():
                raise ClusterUnreachable(f"{group_id} has no coordinator yet (error {code})")

    async def ask(self, group_id: str, request: ClientRequest, timeout_ms: int) -> Any:
        """See ``Cluster.ask_coordinator``."""
        tries = _Tries(timeout_ms)
        again = False
        while True:
            node_id = await self.find(group_id, again=again, timeout_ms=tries.left_ms)
            again = True
            try:
                answer = await self._ask_node(node_id, request, tries.left_ms)
            except NotServed:
                raise
            except NotSent:
                # The coordinator may have moved away from a broker that is down.
                if not await tries.pause():
                    raise
            except ClusterUnreachable:
                self._remembered.pop(group_id, None)
                raise
            else:
                if not wants_other_coordinator(answer) or not await tries.pause():
                    return answer


class _Tries:
    """The time of one call, and the pauses between its attempts."""

    def __init__(self, timeout_ms: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._end_s = self._loop.time() + timeout_ms / 1_000
        self._pause_s = _PAUSE_S

    @property
    def left_ms(self) -> int:
        return max(int((self._end_s - self._loop.time()) * 1_000), 1)

    async def pause(self) -> bool:
        """Wait, longer each time; false if no time would be left."""
        if self._end_s - self._loop.time() <= self._pause_s:
            return False
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, _PAUSE_MAX_S)
        return True
