"""Readings of a log: one pace for all of them."""

from __future__ import annotations

import asyncio

import pytest

from coordinator.runtime.as_of.log_reads import ReadBudget


class Clock:
    """Time passes while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def now(self) -> float:
        return self.now_s

    async def sleep(self, wait_s: float) -> None:
        self.now_s += wait_s


async def test_all_who_spend_keep_one_rate() -> None:
    clock = Clock()
    budget = ReadBudget(1_000, clock.now, clock.sleep)
    for _ in range(21):
        await budget.spend(500)
    assert clock.now_s == pytest.approx(110.0)


async def test_what_was_not_spent_is_not_made_up_for() -> None:
    clock = Clock()
    budget = ReadBudget(1_000, clock.now, clock.sleep)
    await budget.spend(500)
    await clock.sleep(60.0)
    began = clock.now_s
    for _ in range(11):
        await budget.spend(1_000)
    assert clock.now_s - began == pytest.approx(10.0)


async def test_several_at_once_wait_for_each_other() -> None:
    slept: list[float] = []

    async def sleep(wait_s: float) -> None:
        slept.append(wait_s)

    budget = ReadBudget(1_000, lambda: 0.0, sleep)
    await asyncio.gather(*(budget.spend(1_000) for _ in range(4)))
    assert slept == pytest.approx([1.0, 2.0, 3.0])
