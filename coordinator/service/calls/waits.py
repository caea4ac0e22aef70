"""Calls that wait for other members; a stopping server ends them at once."""

from __future__ import annotations

import asyncio
from functools import partial

from coordinator.runtime.api import Answer, Coordinator, set_answer
from model.commands.classic import JoinGroup, SyncGroup
from model.errors import GroupError, NotCoordinator
from model.responses.response import Response


class Waits:
    """Pending joins and syncs of classic groups.

    A call that its client cancels is dropped, and its later answer is discarded.
    """

    __slots__ = ("_is_stopping", "_waiting")

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[Answer]] = set()
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def call(self, coordinator: Coordinator, command: JoinGroup | SyncGroup) -> Response:
        """Submit a command and await its answer; raises the ``GroupError`` of an error answer."""
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            coordinator.submit(command, partial(set_answer, waiting))
            if self._is_stopping:
                self._let_go(waiting)
            answer = await waiting
        finally:
            self._waiting.discard(waiting)
        if isinstance(answer, GroupError):
            try:
                raise answer.with_traceback(None)
            finally:
                # Otherwise the exception and the frames that it references form a cycle.
                del answer, waiting
        return answer

    def stop(self) -> None:
        """End all pending calls with NOT_COORDINATOR, so that members find a new coordinator."""
        self._is_stopping = True
        for waiting in tuple(self._waiting):
            self._let_go(waiting)

    @staticmethod
    def _let_go(waiting: asyncio.Future[Answer]) -> None:
        if not waiting.done():
            waiting.set_result(NotCoordinator("The server is stopping: join again."))
