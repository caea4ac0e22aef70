"""The chaos itself: its network, its account, and a short run of both protocols."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from muster import TopicPartition
from tests.chaos.broken import BROKEN, broken
from tests.chaos.ledger import Ledger
from tests.chaos.network import DelayRange, Network, running_network
from tests.chaos.run import run_seed
from tests.support.waiting import until

ONE, TWO = TopicPartition("orders", 1), TopicPartition("orders", 2)


async def test_a_few_seconds_of_it_break_nothing() -> None:
    tally: Counter[str] = Counter()
    assert await run_seed(1, 8, tally) == []
    assert tally["commits acknowledged in new"]
    assert tally["commits acknowledged in classic"]
    assert tally["half-open"] + tally["reset"] + tally["held both ways"]


@pytest.mark.parametrize("name", BROKEN)
def test_what_can_be_broken_is_there(name: str) -> None:
    for target, attribute, replacement in BROKEN[name]:
        taken = inspect.signature(getattr(target, attribute)).parameters
        inspect.signature(replacement).bind(*taken)
    with broken(name):
        for target, attribute, replacement in BROKEN[name]:
            assert getattr(target, attribute) is replacement
    for target, attribute, replacement in BROKEN[name]:
        assert getattr(target, attribute) is not replacement


# ---------------------------------------------------------------------------- the account


def test_two_that_believe_the_same_at_once_are_found() -> None:
    ledger = Ledger("g", 10)
    owned = {"a": frozenset({ONE, TWO}), "b": frozenset[TopicPartition]()}
    for name in owned:
        ledger.enter(name, partial(owned.__getitem__, name))
    ledger.look(1.0)
    assert ledger.violations == []
    owned["b"] = frozenset({TWO})
    ledger.look(2.0)
    ledger.look(3.0)
    assert ledger.violations == ["2.000 g: 2 is owned by a and b"]
    ledger.leave("a")
    assert len(ledger.violations) == 1


def test_an_acknowledged_offset_that_went_back_is_found() -> None:
    ledger = Ledger("g", 10)
    assert ledger.floor(ONE) == 0
    ledger.note_acknowledged(ONE, 5)
    ledger.note_acknowledged(ONE, 4)
    assert (ledger.floor(ONE), ledger.commits) == (5, 2)
    ledger.note_fetched("a", ONE, 5, 5, 1.0)
    # It was asked for before anything was acknowledged.
    ledger.note_fetched("a", ONE, 0, 0, 1.0)
    assert ledger.violations == []
    ledger.note_fetched("a", ONE, 4, 5, 2.0)
    assert ledger.violations == ["2.000 g: a fetched 4 of 1, and 5 was acknowledged"]


def test_a_partition_that_nobody_reads_is_found() -> None:
    ledger = Ledger("g", 10)
    ledger.begin(frozenset({ONE, TWO}), 0.0)
    ledger.note_fetched("a", ONE, 0, 0, 9.0)
    ledger.end(11.0)
    assert ledger.violations == ["11.000 g: nobody read 2 for 11.0 s"]
    assert ledger.longest_gap_s == 11.0


# ---------------------------------------------------------------------------- the network


class Echo:
    """A server that says what it has read, and keeps it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.ended = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.heard)
        self.heard.append(b"")
        try:
            while data := await reader.read(100):
                self.heard[number] += data
                writer.write(data)
        except OSError:
            pass
        writer.transport.abort()
        await asyncio.sleep(0)
        self.ended += 1


@asynccontextmanager
async def running_echo() -> AsyncIterator[tuple[Echo, Network]]:
    echo = Echo()
    async with await asyncio.start_server(echo.accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        chance = random.Random(1)
        delay = DelayRange(chance, 0.0, 0.01)
        async with running_network(port, chance, delay, Counter()) as network:
            yield echo, network
        await until(lambda: echo.ended == len(echo.heard))
        await asyncio.sleep(0)


@asynccontextmanager
async def connected(
    network: Network,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", network.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def test_bytes_come_in_order_however_long_each_takes() -> None:
    async with running_echo() as (_, network), connected(network) as (reader, writer):
        sent = bytes(range(200))
        for byte in sent:
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert await reader.readexactly(len(sent)) == sent


async def test_what_an_abandoned_connection_holds_arrives_after_a_newer_one() -> None:
    async with running_echo() as (echo, network), connected(network) as (reader, writer):
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        (old,) = network._connections
        old.up.hold(60)
        writer.write(b"late")
        await until(lambda: old.up._items)
        old.abandon()
        with pytest.raises(OSError):  # noqa: PT012 - whichever of the two hears it
            assert await reader.read(1) == b""
            raise ConnectionResetError
        async with connected(network) as (again, other):
            other.write(b"new")
            assert await again.readexactly(3) == b"new"
            assert echo.heard == [b"a", b"new"]
            assert not echo.ended
            network.heal()
            await until(lambda: echo.heard == [b"alate", b"new"])
            await until(lambda: echo.ended == 1)


async def test_a_reset_throws_away_what_is_under_way() -> None:
    async with running_echo() as (echo, network), connected(network) as (_, writer):
        await until(lambda: network._connections)
        (connection,) = network._connections
        connection.up.hold(60)
        writer.write(b"lost")
        await until(lambda: connection.up._items)
        connection.reset()
        await until(lambda: echo.ended == 1)
        assert echo.heard == [b""]
