"""Unary calls, tasks of the application, and what it means that one was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
import grpc.aio

from muster.lease import read_clock

T = TypeVar("T")


class AwaitedCancelledError(Exception):
    """A coroutine has awaited what somebody cancelled; nobody has cancelled the coroutine."""


def is_cancelled() -> bool:
    """Whether the running task is to end; else only something that it has awaited was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def ask(method: Callable[..., Awaitable[Any]], request: Any, **options: Any) -> Any:
    """The answer. Raises ``AioRpcError``, also where the connection was closed under the call.

    grpc.aio tells that as it tells who has cancelled the task itself.
    """
    try:
        return await method(request, **options)
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        empty = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(
            grpc.StatusCode.UNAVAILABLE, empty, empty, "the connection was closed", ""
        ) from None


async def raise_failures(awaitable: Awaitable[T]) -> T:
    """What the application's coroutine returns. Raises what it does.

    Where it awaits something that was cancelled (``worker.cancel(); await worker``) it has failed,
    and has not been cancelled itself: ``AwaitedCancelledError``.
    """
    try:
        return await awaitable
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise AwaitedCancelledError("something that it awaited was cancelled") from error


async def stop(task: asyncio.Future[None], deadline: float) -> None:
    """Cancels the task and returns when it has ended, or when ``read_clock`` reads the deadline.

    For callers that are being cancelled: being so once more ends the wait no sooner.
    """
    task.cancel()
    while not task.done() and (left_s := deadline - read_clock()) > 0:
        try:
            await asyncio.wait((task,), timeout=left_s)
        except asyncio.CancelledError:
            continue
