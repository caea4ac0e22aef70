"""A wait ends when it is so; one that fails says what it waited for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.waiting import (
    NotInTime,
    Patience,
    until,
    until_answered,
    wait_until,
    wait_until_answered,
)

never: list[str] = []


def do_nothing() -> None:
    """In the place of a pause."""


async def ask_in_vain() -> int:
    return 7


def test_the_condition_is_looked_at_until_it_holds() -> None:
    looks: list[int] = []
    assert wait_until(lambda: len(looks) == 3, between=lambda: looks.append(1)) >= 0
    assert len(looks) == 3


@pytest.mark.parametrize(
    "wait",
    [
        lambda: until(lambda: "rain" in never, within_s=0, pause_s=0),
        lambda: until(lambda: never, "rain", 0, pause_s=0),
        lambda: until(lambda: never, lambda: ["rain"], 0, pause_s=0),
        lambda: until_answered(ask_in_vain, lambda _: "rain" in never, patience=Patience(0)),
    ],
)
async def test_what_was_waited_for_is_said(wait: Callable[[], Awaitable[Any]]) -> None:
    with pytest.raises(NotInTime, match="rain"):
        await wait()


async def test_the_last_answer_is_said() -> None:
    with pytest.raises(NotInTime, match="rain; the last answer is 7"):
        await until_answered(ask_in_vain, lambda _: False, "rain", patience=Patience(0))
    assert await until_answered(ask_in_vain) == 7
    with pytest.raises(NotInTime, match="rain; the last answer is 7"):
        wait_until_answered(lambda: 7, lambda _: False, "rain", 0, between=do_nothing)
    assert wait_until_answered(lambda: 7) == 7


def test_a_blocking_wait_says_what_it_waited_for() -> None:
    with pytest.raises(NotInTime, match="rain"):
        wait_until(lambda: "rain" in never, within_s=0, between=do_nothing)


def test_what_cannot_come_is_not_waited_for() -> None:
    with pytest.raises(NotInTime, match="rain"):
        wait_until(lambda: False, "rain", 3_600, is_hopeless=lambda: True)


def test_time_that_passes_while_nothing_is_done_is_not_enough() -> None:
    patience = Patience(0, looks_min=3)
    assert [patience.is_over() for _ in range(3)] == [False, False, True]
