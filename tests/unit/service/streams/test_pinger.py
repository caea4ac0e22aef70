"""One beat for all sessions."""

from __future__ import annotations

import asyncio

from coordinator.service.streams.pinger import Pinger
from tests.support.waiting import until


class Silent:
    """Counts the times it was looked at."""

    def __init__(self) -> None:
        self.since: list[float] = []

    def ping_if_silent(self, since: float) -> None:
        self.since.append(since)


async def test_every_session_is_looked_at_on_every_beat() -> None:
    pinger = Pinger(0.02)
    sessions = [Silent() for _ in range(250)]
    for session in sessions:
        pinger.add(session)
    await until(lambda: all(len(session.since) >= 2 for session in sessions))
    for session in sessions:
        pinger.remove(session)
    counts = [len(session.since) for session in sessions]
    await asyncio.sleep(0.05)
    assert [len(session.since) for session in sessions] == counts


async def test_a_session_that_ends_within_a_beat_is_left_alone() -> None:
    pinger = Pinger(0.01)
    last, end = Silent(), Silent()

    class First(Silent):
        def ping_if_silent(self, since: float) -> None:
            pinger.remove(last)

    sessions = [First(), *(Silent() for _ in range(150)), last, end]
    for session in sessions:
        pinger.add(session)
    await until(lambda: end.since)
    assert last.since == []
    for session in sessions:
        pinger.remove(session)


async def test_silence_is_at_least_half_an_interval() -> None:
    loop = asyncio.get_running_loop()
    silences = []

    class Timed(Silent):
        def ping_if_silent(self, since: float) -> None:
            silences.append(loop.time() - since)

    pinger, session = Pinger(0.1), Timed()
    pinger.add(session)
    await until(lambda: silences)
    assert silences[0] >= 0.05
    pinger.remove(session)
