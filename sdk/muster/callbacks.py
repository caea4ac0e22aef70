"""Calls the callbacks of the application, which may be functions or coroutine functions."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Final, TypeAlias

from muster.client_assignor import Assignor
from muster.connection.unary import raise_failures
from muster.errors import CallbackFailed
from muster.membership import Assign, Inform, Lose, Partitions, Revoke

_LOG = logging.getLogger("muster")

Callback: TypeAlias = Callable[[Partitions], Awaitable[None] | None]
CallbackStep: TypeAlias = Assign | Revoke | Lose | Inform

_NAMES: Final[Mapping[type, str]] = {
    Assign: "on_assigned",
    Revoke: "on_revoked",
    Lose: "on_lost",
    Inform: "on_assignment",
}


class Running:
    """A callback that runs; tasks that it starts inherit it as their context."""

    __slots__ = ("owner",)

    def __init__(self, owner: object) -> None:
        self.owner: object | None = owner


_RUNNING: Final[ContextVar[Running | None]] = ContextVar("muster_callback", default=None)


@contextmanager
def running_callback(owner: object) -> Iterator[None]:
    """Code in this context, and tasks that it starts, count as a callback of the owner."""
    running = Running(owner)
    token = _RUNNING.set(running)
    try:
        yield
    finally:
        running.owner = None
        _RUNNING.reset(token)


def is_in_callback(owner: object) -> bool:
    """Whether this is called from a callback of the owner that still runs."""
    running = _RUNNING.get()
    return running is not None and running.owner is owner


class Callbacks:
    """Calls the application, and keeps what it raises until the application asks."""

    __slots__ = ("_assignors", "_errors", "_on_assigned", "_on_lost", "_on_revoked", "_running")

    def __init__(
        self,
        on_assigned: Callback | None,
        on_revoked: Callback | None,
        on_lost: Callback | None,
        assignors: Sequence[Assignor] = (),
    ) -> None:
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._on_lost = on_lost
        self._errors: list[CallbackFailed] = []
        self._running: CallbackStep | None = None

    def call(self, step: CallbackStep) -> Awaitable[None] | None:
        """Call the callback of the step. If an awaitable is returned, the caller must await it."""
        call = self._find(step)
        if call is None:
            return None
        try:
            with running_callback(self):
                result = call()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - kept for who looks
            # A plain function cannot be cancelled: it asked for the result of something that was.
            self._keep(step, error)
            return None
        return self._finish(step, result) if inspect.isawaitable(result) else None

    def _find(self, step: CallbackStep) -> Callable[[], Awaitable[None] | None] | None:
        match step:
            case Assign(partitions):
                callback = self._on_assigned
            case Revoke(partitions):
                callback = self._on_revoked
            case Lose(partitions):
                callback = self._on_lost
            case Inform(name, assignment, generation):
                assignor = self._assignors.get(name)
                if assignor is None:
                    return None
                return partial(assignor.on_assignment, assignment, generation)
        return None if callback is None else partial(callback, partitions)

    def raise_kept(self) -> None:
        """Raise the oldest ``CallbackFailed`` that was not raised yet."""
        if self._errors:
            raise self._errors.pop(0)

    def note_late(self, timeout_ms: int) -> None:
        """The callback that runs has exceeded the timeout of ``close``, and will be cancelled."""
        if self._running is not None:
            name = _NAMES[type(self._running)]
            _LOG.error("callback_cancelled callback=%s timeout_ms=%d", name, timeout_ms)
            self._errors.append(
                CallbackFailed(f"{name} was cancelled: it did not return within {timeout_ms} ms")
            )

    async def _finish(self, step: CallbackStep, result: Awaitable[None]) -> None:
        self._running = step
        try:
            with running_callback(self):
                await raise_failures(result)
        except Exception as error:  # noqa: BLE001 - kept, and raised where the application looks
            self._keep(step, error)
        finally:
            self._running = None

    def _keep(self, step: CallbackStep, error: BaseException) -> None:
        name = _NAMES[type(step)]
        _LOG.error("callback_failed callback=%s", name, exc_info=error)
        failure = CallbackFailed(f"{name} raised {type(error).__name__}: {error}")
        failure.__cause__ = error
        self._errors.append(failure)
