"""A census finds what is there, and changes nothing."""

from __future__ import annotations

import gc
import os
from collections import Counter
from pathlib import Path

from tests.soak.census import Census, CensusTaker, is_own, wait_for_census


class Thing:
    """Of the tests."""

    def __init__(self, other: object = None) -> None:
        self.other = other


NAME = f"{__name__}.Thing"


async def take(path: Path) -> Census:
    taker = CensusTaker(path, ["census.Thing"])
    taker.take()
    return await wait_for_census(path, 1)


async def test_the_living_and_the_garbage_are_told_apart(tmp_path: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        kept = [Thing() for _ in range(30)]
        gc.freeze()
        for _ in range(20):
            thing = Thing()
            thing.other = thing
        del thing
        before = Counter(map(type, gc.get_objects()))[Thing]
        found = await take(tmp_path / "census.json")
        assert Counter(map(type, gc.get_objects()))[Thing] == before == 20
    finally:
        gc.unfreeze()
        gc.enable()
    assert found.living[NAME] == len(kept)
    assert found.garbage[NAME] == 20
    assert found.tasks >= 1
    assert sum(line.startswith("in a cycle: ") for line in found.why) == 3


async def test_what_the_collector_does_not_know_is_counted(tmp_path: Path) -> None:
    many = {f"key-{number}": os.urandom(1_000) for number in range(2_000)}
    assert not gc.is_tracked(many)
    holder = Thing(many)
    found = await take(tmp_path / "census.json")
    assert found.object_bytes > 2_000_000
    assert found.living["builtins.bytes"] > len(many)
    assert holder.other is many


def test_our_own_are_told_from_others() -> None:
    assert is_own("gateway.connection.connection.Connection")
    assert is_own("function coordinator.runtime.runtime.Runtime.call.<locals>.reply")
    assert not is_own("grpc._cython.cygrpc.RPCState")
    assert not is_own("builtins.tuple")
