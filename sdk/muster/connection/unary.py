"""Unary calls, tasks of the application, and what it means that one was cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import grpc
import grpc.aio

from muster.connection.lease import read_clock

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


_TROUBLES: Final = (
    ("Connection refused", "connection refused: nothing listens there"),
    ("before receiving SETTINGS", "it took the connection, and says nothing: is it a gRPC port?"),
    ("http1.x server", "what listens there does not speak gRPC: is it the HTTP port?"),
    ("Expected SETTINGS", "what listens there does not speak gRPC"),
    ("Socket closed", "it closed the connection before it said anything: is it the Kafka port?"),
    ("lookup failed", "its name is not known"),
)
"""What details of gRPC mean for who has to put it right."""


def describe_trouble(error: grpc.aio.AioRpcError) -> str:
    """Why a server could not be asked, for people."""
    details = error.details() or error.code().name
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return f"what answers there is no Muster: {details}"
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return "it did not answer"
    said = details.rpartition("last error: ")[2]
    for part, sentence in _TROUBLES:
        if part in said:
            return f"{sentence} ({said})"
    return said


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


def call_in_thread(function: Callable[..., T], *values: Any) -> asyncio.Future[T]:
    """What it returns or raises. The thread is its own, and keeps no program from ending."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(set_answer: Callable[[Any], None], value: Any) -> None:
        if not answer.done():
            set_answer(value)

    def run() -> None:
        try:
            outcome = (answer.set_result, function(*values))
        except asyncio.CancelledError as error:
            failure = AwaitedCancelledError("something that it awaited was cancelled")
            failure.__cause__ = error
            outcome = (answer.set_exception, failure)  # type: ignore[assignment]
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            outcome = (answer.set_exception, error)  # type: ignore[assignment]
        with suppress(RuntimeError):
            # The loop may have ended meanwhile.
            loop.call_soon_threadsafe(tell, *outcome)

    threading.Thread(target=run, name="muster-assign", daemon=True).start()
    return answer


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
