"""The heartbeats of sentinels."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

from model.errors import ErrorCode
from tests.support.waiting import until
from upstream.cluster.cluster import ClusterUnreachable
from upstream.sentinel import upkeep as upkeep_module
from upstream.sentinel.sentinel_seat import Seat
from upstream.sentinel.upkeep import SentinelUpkeep


class Beats:
    """Answers heartbeats as ``codes`` say by group; no code: not at all."""

    def __init__(self) -> None:
        self.codes: dict[str, ErrorCode | None] = {}
        self.heard: Counter[str] = Counter()
        self.open = asyncio.Event()
        self.open.set()

    async def ask_coordinator(self, group_id: str, request: Any, **_: object) -> Any:
        self.heard[group_id] += 1
        assert request.fields["group_instance_id"] == "muster"
        await self.open.wait()
        code = self.codes.get(group_id, ErrorCode.NONE)
        if code is None:
            raise ClusterUnreachable("silent")
        return SimpleNamespace(error_code=code)


def make(beats: Beats, monkeypatch: Any) -> tuple[SentinelUpkeep, list[tuple[str, ErrorCode]]]:
    monkeypatch.setattr(upkeep_module, "INTERVAL_S", 0.1)
    lost: list[tuple[str, ErrorCode]] = []
    upkeep = SentinelUpkeep(beats, lambda group, code: lost.append((group, code)))  # type: ignore[arg-type]
    upkeep.start()
    return upkeep, lost


async def test_each_seat_has_its_turn(monkeypatch: Any) -> None:
    beats = Beats()
    upkeep, lost = make(beats, monkeypatch)
    for number in range(50):
        upkeep.keep(f"g{number}", Seat("m", 1))
    await until(lambda: len(beats.heard) == 50)
    assert max(beats.heard.values()) - min(beats.heard.values()) <= 1
    upkeep.drop("g0")
    heard = beats.heard["g0"]
    others = beats.heard["g1"]
    await until(lambda: beats.heard["g1"] > others + 1)
    assert beats.heard["g0"] <= heard + 1
    assert lost == []
    await upkeep.stop()


async def test_a_lost_seat_is_told_and_silence_is_not(monkeypatch: Any) -> None:
    beats = Beats()
    upkeep, lost = make(beats, monkeypatch)
    beats.codes = {"gone": ErrorCode.UNKNOWN_MEMBER_ID, "silent": None, "odd": ErrorCode(35)}
    for group_id in ("gone", "silent", "odd", "well"):
        upkeep.keep(group_id, Seat("m", 1))
    await until(lambda: min(beats.heard[name] for name in ("gone", "silent", "odd", "well")) > 1)
    assert set(lost) == {("gone", ErrorCode.UNKNOWN_MEMBER_ID)}
    await upkeep.stop()


async def test_an_answer_to_a_former_seat_is_not_told(monkeypatch: Any) -> None:
    beats = Beats()
    upkeep, lost = make(beats, monkeypatch)
    beats.codes = {"g": ErrorCode.FENCED_INSTANCE_ID}
    beats.open.clear()
    upkeep.keep("g", Seat("m", 1))
    await until(lambda: beats.heard["g"] > 0)
    upkeep.keep("g", Seat("m2", 1))
    beats.codes = {}
    beats.open.set()
    await until(lambda: beats.heard["g"] > 2)
    assert lost == []
    await upkeep.stop()
