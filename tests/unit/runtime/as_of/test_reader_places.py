"""Readers of the past are shared: nobody has all of them, and who waits is next in turn."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from coordinator.runtime.as_of import reader_places
from coordinator.runtime.as_of.reader_places import NoPlace, Place, ReaderPlaces, compute_holder
from model.caller import Caller


class Line:
    """Those that want a place, by name; each has it until it is told to leave."""

    def __init__(self, places: int) -> None:
        self.places = ReaderPlaces(places)
        self.entered: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def want(self, name: str) -> None:
        """``name`` begins with its holder's."""
        self._leave[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._hold(name))

    async def _hold(self, name: str) -> None:
        async with self.places.place(name[0]):
            self.entered.append(name)
            await self._leave[name].wait()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await self._tasks[name]
        await settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_holder_leaves_a_place_to_others_and_they_take_turns() -> None:
    line = Line(2)
    for number in range(4):
        line.want(f"a{number}")
    await settle()
    assert line.entered == ["a0"]
    line.want("b0")
    line.want("c0")
    line.want("b1")
    await settle()
    assert line.entered == ["a0", "b0"]
    await line.leave("a0")
    assert line.entered[2:] == ["c0"], "a has had one, and b has one"
    await line.leave("b0")
    assert line.entered[3:] in (["a1"], ["b1"])
    await line.leave("c0")
    assert sorted(line.entered[3:]) == ["a1", "b1"]
    for name in ("a2", "a3"):
        await line.cancel(name)
    for name in ("a1", "b1"):
        await line.leave(name)
    line.want("d0")
    await settle()
    assert line.entered[-1] == "d0"
    await line.leave("d0")


async def test_the_only_place_is_everybodys() -> None:
    line = Line(1)
    line.want("a0")
    await settle()
    assert line.entered == ["a0"]
    line.want("b0")
    await line.leave("a0")
    assert line.entered == ["a0", "b0"]
    await line.leave("b0")


async def test_a_place_is_taken_until_its_reader_is_free() -> None:
    places = ReaderPlaces(1)
    busy: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    async with places.place("a") as place:
        place.busy = busy
    entered: list[Place] = []

    async def enter() -> None:
        async with places.place("b") as place:
            entered.append(place)

    task = asyncio.create_task(enter())
    await settle()
    assert not entered
    busy.set_result(None)
    await task
    assert entered


async def test_the_numbers_of_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_places, "WAITING_MAX", 3)
    monkeypatch.setattr(reader_places, "WAITING_OF_ONE_MAX", 2)
    places = ReaderPlaces(3)
    async with AsyncExitStack() as held:
        for holder in ("a", "a"):
            await held.enter_async_context(places.place(holder))
        with pytest.raises(NoPlace) as caught:
            await held.enter_async_context(places.place("a"))
        assert caught.value.is_own
        await held.enter_async_context(places.place("b"))
        with pytest.raises(NoPlace) as caught:
            await held.enter_async_context(places.place("c"))
        assert not caught.value.is_own
    async with places.place("c"):
        pass


def test_a_holder_is_a_principal_at_a_host() -> None:
    callers = [
        Caller("User:a", client_id, host)
        for client_id, host in (("x", "/10.0.0.1"), ("y", "/10.0.0.1"), ("x", "/10.0.0.2"))
    ]
    assert len({compute_holder(caller) for caller in callers}) == 2
