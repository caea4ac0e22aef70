"""Waits for a condition that has no event, or for a certain response.

``wait_until`` and ``wait_until_answered`` block their thread, ``until`` and ``until_answered`` let
the loop run. If there is an event, wait for that instead. A test that measures a duration, or
checks that something never happens, polls by itself.
"""

from __future__ import annotations

import asyncio
import linecache
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
What = str | Callable[[], object]

WITHIN_S = 30.0
POLLED_WITHIN_S = 90.0
_LOOKS_MIN = 10


class Polled(Protocol):
    """A consumer, or what polls one."""

    def poll(self, timeout_s: float, /) -> object: ...


class NotInTime(AssertionError):
    """The condition did not become true in time."""


class Patience:
    """A time limit that also requires a minimum of checks.

    On a machine that stalls, time passes though nothing is done.
    """

    def __init__(self, within_s: float, looks_min: float = _LOOKS_MIN) -> None:
        self._deadline = time.monotonic() + within_s
        self._looks = 0
        self._looks_min = looks_min

    def is_over(self) -> bool:
        """Whether to stop; call it once per check."""
        self._looks += 1
        return time.monotonic() > self._deadline and self._looks >= self._looks_min


def pause() -> None:
    """Sleep between two checks."""
    time.sleep(0.02)


def wait_until(
    condition: Callable[[], object],
    what: What = "",
    within_s: float = WITHIN_S,
    *,
    between: Callable[[], object] = pause,
    is_hopeless: Callable[[], bool] = lambda: False,
) -> float:
    """Wait for the condition; returns the seconds it took.

    ``what`` says, or computes, what is waited for; without it the source line of the condition
    does. Raises ``NotInTime``, and does so at once if ``is_hopeless``.
    """
    began = time.monotonic()
    patience = Patience(within_s)
    while not condition():
        if is_hopeless() or patience.is_over():
            raise NotInTime(_describe(condition, what, within_s))
        between()
    return time.monotonic() - began


def poll_until(
    consumers: Sequence[Polled],
    condition: Callable[[], object],
    what: What = "",
    wait_s: float = 0.02,
) -> float:
    """As ``wait_until``, with a poll of each consumer in turn between two looks.

    ``NotInTime`` says of each consumer what ``str`` says.
    """

    def poll() -> None:
        for consumer in consumers:
            consumer.poll(wait_s)

    def describe() -> str:
        said = _describe(condition, what, POLLED_WITHIN_S)
        return "; ".join((said, *map(str, consumers)))

    return wait_until(condition, describe, POLLED_WITHIN_S, between=poll)


def wait_until_answered(
    ask: Callable[[], T],
    is_it: Callable[[T], object] = bool,
    what: What = "",
    within_s: float = WITHIN_S,
    *,
    between: Callable[[], object] = pause,
) -> T:
    """Ask repeatedly; the first response that ``is_it``. Raises ``NotInTime`` with the last one."""
    patience = Patience(within_s)
    while not is_it(answer := ask()):
        if patience.is_over():
            raise NotInTime(_describe_answer(ask, is_it, what, answer))
        between()
    return answer


async def until(
    condition: Callable[[], object],
    what: What = "",
    within_s: float = WITHIN_S,
    *,
    pause_s: float = 0.002,
) -> None:
    """``wait_until`` on the event loop."""
    patience = Patience(within_s)
    while not condition():
        if patience.is_over():
            raise NotInTime(_describe(condition, what, within_s))
        await asyncio.sleep(pause_s)


async def until_answered(
    ask: Callable[[], Awaitable[T]],
    is_it: Callable[[T], object] = bool,
    what: What = "",
    *,
    patience: Patience | None = None,
    pause_s: float = 0.01,
) -> T:
    """Ask repeatedly; the first response that ``is_it``. Raises ``NotInTime`` with the last one."""
    patience = patience or Patience(WITHIN_S)
    while not is_it(answer := await ask()):
        if patience.is_over():
            raise NotInTime(_describe_answer(ask, is_it, what, answer))
        await asyncio.sleep(pause_s)
    return answer


def _describe_answer(
    ask: Callable[[], Any], is_it: Callable[..., Any], what: What, answer: object
) -> str:
    said = _describe(ask if is_it is bool else is_it, what)
    return f"{said}; the last answer is {answer}"


def _describe(condition: Callable[..., Any], what: What, within_s: float | None = None) -> str:
    said = what() if callable(what) else what
    code = getattr(condition, "__code__", None)
    if not said and code is not None:
        said = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    time_said = "not in time" if within_s is None else f"not within {within_s:g} s"
    return f"{time_said}: {said or condition}"
