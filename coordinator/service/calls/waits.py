"""Calls that wait for other members; a server that stops does not wait for them."""

from __future__ import annotations

import asyncio
from functools import partial

from coordinator.runtime.api import Answer, Coordinator, set_answer
from model.commands import JoinGroup, SyncGroup
from model.errors import GroupError, NotCoordinator
from model.responses import Response


class Waits:
    """Joins and syncs of classic groups that are not answered yet.

    A call that its client cancels is forgotten: the answer, when it comes, goes nowhere.
    """

    __slots__ = ("_is_stopping", "_waiting")

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[Answer]] = set()
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def call(self, coordinator: Coordinator, command: JoinGroup | SyncGroup) -> Response:
        """The answer, however late. Raises the ``GroupError`` of an error answer."""
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
                # It would hold the frames that it was raised in, there and here.
                del answer, waiting
        return answer

    def stop(self) -> None:
        """Nobody waits any longer: members join again, wherever they find their coordinator."""
        self._is_stopping = True
        for waiting in tuple(self._waiting):
            self._let_go(waiting)

    @staticmethod
    def _let_go(waiting: asyncio.Future[Answer]) -> None:
        if not waiting.done():
            waiting.set_result(NotCoordinator("The server is stopping: join again."))
