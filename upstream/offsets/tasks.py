"""Tasks that answer: whatever happens, what they were to answer is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from coordinator.runtime.api import Reply
from model.errors import CoordinatorNotAvailable, GroupError, UnknownServerError
from model.responses.response import Response

log = structlog.get_logger()


class AnsweringTasks:
    """Runs at most ``limit`` tasks at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_full(self) -> bool:
        """Whether one more is too many."""
        return len(self._tasks) >= self._limit

    def answer(self, computing: Coroutine[Any, Any, Response], reply: Reply) -> asyncio.Task[None]:
        """Reply with the result, or with the error that is raised."""
        return self.run(_answer(computing, reply))

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine that answers by itself."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """End all tasks; what they were to answer is answered."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answer(computing: Coroutine[Any, Any, Response], reply: Reply) -> None:
    try:
        answer: Response | GroupError = await computing
    except GroupError as error:
        answer = error.with_traceback(None)
    except asyncio.CancelledError:
        reply(CoordinatorNotAvailable("The coordinator is stopping."))
        raise
    except Exception as bug:
        log.exception("answering_failed")
        answer = UnknownServerError(repr(bug))
    reply(answer)
