"""The received bytes of a connection that are not handled yet."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from gateway.connection.arriving import Arriving
from gateway.connection.held_bytes import HeldBytes
from tests.support.gateway.fake_coordinator import VirtualClock


def make() -> tuple[Arriving, HeldBytes]:
    held = HeldBytes((), VirtualClock(), 2**40, 2**40)
    return Arriving(held), held


def test_bytes_that_come_one_by_one_take_no_more_memory_than_they_are_counted_for() -> None:
    arriving, held = make()
    tracemalloc.start()
    try:
        arriving.add((60_000).to_bytes(4, "big"), 0.0)
        for number in range(50_000):
            arriving.add(bytes((number % 256,)) * 1, 0.0)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held.requests == arriving.have == 50_004
    assert taken < 2 * held.requests


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_size_are_one_stream(seed: int) -> None:
    chance = random.Random(seed)
    arriving, held = make()
    sizes = [chance.choice((1, 3, 511, 512, 513, 5_000)) for _ in range(200)]
    pieces = [chance.randbytes(size) for size in sizes]
    whole = (10**6).to_bytes(4, "big") + b"".join(pieces)
    arriving.add(whole[:4], 0.0)
    for piece in pieces:
        arriving.add(piece, 0.0)
    assert (arriving.have, arriving.need) == (len(whole), 10**6 + 4)
    assert arriving.take() == whole
    assert held.requests == arriving.have == 0
