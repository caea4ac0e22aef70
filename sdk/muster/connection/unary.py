"""Unary calls and tasks of the application, and how to tell who was cancelled."""

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
    """A coroutine awaited something that was cancelled, but was not cancelled itself."""


def is_cancelled() -> bool:
    """Whether the running task was cancelled, and not only something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def ask(method: Callable[..., Awaitable[Any]], request: Any, **options: Any) -> Any:
    """Return the answer. Raises ``AioRpcError``, also if the connection is closed meanwhile.

    In that case grpc.aio raises ``CancelledError``, as if the task itself had been cancelled.
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


_PUSHBACK: Final = "grpc-retry-pushback-ms"


def find_pushback_s(error: grpc.aio.AioRpcError) -> float | None:
    """How long the server asks to wait before the call comes again; ``None`` if it does not.

    A client that is over its quota is told so.
    """
    trailers = error.trailing_metadata()
    pushback = trailers.get(_PUSHBACK) if isinstance(trailers, grpc.aio.Metadata) else None
    return int(pushback) / 1_000 if pushback is not None and str(pushback).isdecimal() else None


_TROUBLES: Final = (
    ("Connection refused", "connection refused: nothing listens there"),
    (
        "before receiving SETTINGS",
        "it accepted the connection, but is silent: is it a gRPC port?",
    ),
    ("http1.x server", "the port does not speak gRPC: is it the HTTP port?"),
    ("Expected SETTINGS", "the port does not speak gRPC"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not of a CA that tls names"),
    ("Hostname Verification", "its certificate is for another host name"),
    ("WRONG_VERSION_NUMBER", "it speaks no TLS: leave tls out"),
    (
        "Socket closed",
        "it closed the connection before it sent anything: is it the Kafka port, or does it want "
        "TLS or a client's certificate?",
    ),
    ("lookup failed", "the host name is unknown"),
)
"""Parts of gRPC's error details, and what they mean."""


_CORE = "Internal error from Core"


def says_nothing(error: grpc.aio.AioRpcError) -> bool:
    """Whether gRPC broke the call by itself, before it had read the server's status."""
    return error.code() is grpc.StatusCode.INTERNAL and error.details() == _CORE


def describe_trouble(error: grpc.aio.AioRpcError) -> str:
    """Why a call failed, for humans."""
    details = error.details() or error.code().name
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return f"the server is not a Muster server: {details}"
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return "it did not answer"
    cause = details.rpartition("last error: ")[2]
    for part, sentence in _TROUBLES:
        if part in cause:
            return f"{sentence} ({cause})"
    return cause


async def raise_failures(awaitable: Awaitable[T]) -> T:
    """Await a coroutine of the application, and raise what it raises.

    If it awaits something that was cancelled (``worker.cancel(); await worker``), it has failed but
    was not cancelled itself: raises ``AwaitedCancelledError``.
    """
    try:
        return await awaitable
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise AwaitedCancelledError("something that it awaited was cancelled") from error


def call_in_thread(function: Callable[..., T], *values: Any) -> asyncio.Future[T]:
    """Call a function in a new daemon thread, which does not keep the program from exiting."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(set_answer: Callable[[Any], None], value: Any) -> None:
        if not answer.done():
            set_answer(value)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (answer.set_result, function(*values))
        except asyncio.CancelledError as error:
            failure = AwaitedCancelledError("something that it awaited was cancelled")
            failure.__cause__ = error
            outcome = (answer.set_exception, failure)
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            outcome = (answer.set_exception, error)
        with suppress(RuntimeError):
            # The event loop may have been closed meanwhile.
            loop.call_soon_threadsafe(tell, *outcome)

    threading.Thread(target=run, name="muster-call", daemon=True).start()
    return answer


async def stop(task: asyncio.Future[None], deadline: float) -> None:
    """Cancel the task and wait until it has ended, or until the deadline of ``read_clock``.

    Its callers are being cancelled themselves: another cancellation does not end the wait.
    """
    task.cancel()
    while not task.done() and (left_s := deadline - read_clock()) > 0:
        try:
            await asyncio.wait((task,), timeout=left_s)
        except asyncio.CancelledError:
            continue
