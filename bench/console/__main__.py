"""Measures the console beside a server's other work, all in one run.

    python -m bench.console [--members 1000] [--partitions 1000] [--consoles 50] [--runs 3]

Prints what was found, and what it is to be, and exits with 1 if something is not. The pages, the
waits of another client and the updates are of one group. The load of open consoles is that beside
kload's heartbeats, of 1,000 members of 10 other groups at 10,000 a second: rounds without consoles,
with them, and with a group that changes meanwhile, each time in another order, after a round that
does not count. Medians of the differences within a round count.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import NamedTuple

import grpc.aio

from bench.console.browsers import drain, find_stream, following, get, wait_for, watch
from bench.console.members import Crowd, Member
from bench.peer import run_kload
from bench.stand import serve
from muster.v1 import admin_pb2, admin_pb2_grpc, group_pb2_grpc
from tests.server import MusterServer

GROUP, TOPIC = "looked-at", "lanes"
PAGES = 20
UPDATES = 20
IDLE_S = 5.0
RATE = 10_000
"""Heartbeats a second that are offered."""
RATE_S = 4.0
WITHOUT, WITH, CHANGING = "without", "with", "changing"
ORDERS = (
    (WITHOUT, WITH, CHANGING),
    (CHANGING, WITH, WITHOUT),
    (WITH, WITHOUT, CHANGING),
)


class Figure(NamedTuple):
    """What was measured. ``most`` is what it may be; ``None`` for a figure to compare with."""

    name: str
    value: float
    unit: str
    most: float | None = None

    @property
    def is_met(self) -> bool:
        return self.most is None or self.value <= self.most


class Load(NamedTuple):
    """What kload measured; ``cpu_s`` is the CPU of the server in one second."""

    rate: float
    cpu_s: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Bench:
    """One server, its group, and what to measure."""

    options: argparse.Namespace
    server: MusterServer
    channel: grpc.aio.Channel
    crowd: Crowd

    @property
    def place(self) -> tuple[str, int]:
        host, _, port = self.server.http.rpartition(":")
        return host, int(port)

    async def measure_pages(self) -> Iterator[Figure]:
        """How long pages take, and how long another client waits meanwhile."""
        async with self.crowd.kept():
            return await self._measure_pages()

    async def _measure_pages(self) -> Iterator[Figure]:
        host, port = self.place
        quiet = await watch(self.place, asyncio.sleep(IDLE_S))
        took: list[float] = []
        size = 0

        async def load() -> None:
            nonlocal size
            for _ in range(PAGES):
                body, took_ms = await get(host, port, f"/groups/{GROUP}")
                took.append(took_ms)
                size = len(body)
                await asyncio.sleep(0.05)

        waits = await watch(self.place, load())
        return iter(
            (
                Figure("group page, median", statistics.median(took), "ms", 300),
                Figure("group page, slowest", max(took), "ms"),
                Figure("group page", size / 1_000, "kB"),
                Figure("another client, idle server: longest wait", max(quiet), "ms"),
                Figure("another client, while pages load: longest wait", max(waits), "ms"),
                Figure("another client, while pages load: 99th percentile", _p99(waits), "ms", 20),
            )
        )

    async def measure_updates(self) -> Iterator[Figure]:
        """From the answer to a join, which is durable then, to the event that shows it."""
        async with self.crowd.kept():
            return await self._measure_updates()

    async def _measure_updates(self) -> Iterator[Figure]:
        host, port = self.place
        took: list[float] = []
        path = await find_stream(host, port, GROUP)
        async with following(host, port, path) as events:
            stub = group_pb2_grpc.GroupServiceStub(self.channel)
            for number in range(UPDATES):
                late = Member(stub, GROUP, f"late-{number}", TOPIC)
                shown = asyncio.create_task(wait_for(events, late.member_id.encode()))
                await late.beat()
                began_s = time.perf_counter()
                await shown
                took.append((time.perf_counter() - began_s) * 1_000)
                await late.leave()
                reading = asyncio.create_task(drain(events))
                await self.crowd.settle()
                await asyncio.sleep(0.5)
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading
        return iter(
            (
                Figure("update after a join, median", statistics.median(took), "ms", 100),
                Figure("update after a join, slowest", max(took), "ms"),
            )
        )

    async def measure_rates(self) -> Iterator[Figure]:
        """What open consoles cost a server that has 10,000 heartbeats a second to answer."""
        loads = {WITHOUT: self._load, WITH: self._load_with, CHANGING: self._load_changing}
        await self._load()
        rounds: list[dict[str, Load]] = []
        for number in range(self.options.runs):
            order = ORDERS[number % len(ORDERS)]
            rounds.append({name: await loads[name]() for name in order})
        count = self.options.consoles

        def median(of: Callable[[dict[str, Load]], float]) -> float:
            return statistics.median(map(of, rounds))

        def cost(name: str) -> float:
            return median(lambda each: (1 - each[name].rate / each[WITHOUT].rate) * 100)

        def cpu(name: str) -> float:
            return median(lambda each: (each[name].cpu_s - each[WITHOUT].cpu_s) * 100)

        return iter(
            (
                Figure("heartbeats without consoles", median(lambda e: e[WITHOUT].rate), "/s"),
                Figure("  CPU of the server", median(lambda e: e[WITHOUT].cpu_s) * 100, "%"),
                Figure("  99th percentile", median(lambda e: e[WITHOUT].p99_ms), "ms"),
                Figure(f"{count} consoles cost of the rate", cost(WITH), "%", 5),
                Figure("  CPU of the server on top, of a core", cpu(WITH), "%"),
                Figure("  99th percentile", median(lambda e: e[WITH].p99_ms), "ms"),
                Figure(f"{count} consoles, a change a second: of the rate", cost(CHANGING), "%", 5),
                Figure("  CPU of the server on top, of a core", cpu(CHANGING), "%"),
                Figure("  99th percentile", median(lambda e: e[CHANGING].p99_ms), "ms"),
            )
        )

    async def _load_with(self) -> Load:
        async with AsyncExitStack() as stack:
            await self._open_consoles(stack)
            return await self._load()

    async def _load_changing(self) -> Load:
        async with AsyncExitStack() as stack:
            await self._open_consoles(stack)
            ending = asyncio.Event()
            changing = asyncio.create_task(self._change(ending))
            try:
                return await self._load()
            finally:
                ending.set()
                await changing

    async def _open_consoles(self, stack: AsyncExitStack) -> None:
        host, port = self.place
        path = await find_stream(host, port, GROUP)
        for _ in range(self.options.consoles):
            events = await stack.enter_async_context(following(host, port, path))
            reading = asyncio.create_task(drain(events))
            stack.callback(reading.cancel)

    async def _change(self, ending: asyncio.Event) -> None:
        """A member joins or leaves each second; at the end it is gone."""
        stub = group_pb2_grpc.GroupServiceStub(self.channel)
        late = Member(stub, GROUP, "late", TOPIC)
        while not ending.is_set():
            await late.beat()
            await asyncio.sleep(1)
            await late.leave()
            await asyncio.sleep(1)

    async def _load(self) -> Load:
        """Nobody else asks for anything meanwhile."""
        await self.crowd.settle()
        report = await asyncio.to_thread(
            run_kload,
            "heartbeats",
            self.server.kafka,
            pid=self.server.pid,
            partitions=1_000,
            conns=32,
            rate=RATE,
            seconds=RATE_S,
            warm_up=1,
        )
        return Load(
            float(report["rate"]),
            float(report["server_cpu_seconds"]) / float(report["seconds"]),
            float(report["latency_ms"]["p99"]),
        )


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) * 99 // 100, len(values) - 1)]


async def run(options: argparse.Namespace) -> list[Figure]:
    """All figures of one server."""
    found: list[Figure] = []
    with serve() as server:
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            admin = admin_pb2_grpc.AdminServiceStub(channel)
            await admin.CreateTopic(
                admin_pb2.CreateTopicRequest(topic_name=TOPIC, num_partitions=options.partitions)
            )
            stub = group_pb2_grpc.GroupServiceStub(channel)
            names = (f"m-{number:05}" for number in range(options.members))
            crowd = Crowd(channel, [Member(stub, GROUP, name, TOPIC) for name in names])
            _note(f"{options.members} members join")
            await crowd.settle()
            bench = Bench(options, server, channel, crowd)
            parts = {
                "pages": bench.measure_pages,
                "updates": bench.measure_updates,
                "rates": bench.measure_rates,
            }
            for name in options.only or parts:
                _note(name)
                found.extend(await parts[name]())
    return found


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--members", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--consoles", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=("pages", "updates", "rates"))
    figures = asyncio.run(run(parser.parse_args()))
    for figure in figures:
        is_to_be = "" if figure.most is None else f"  (at most {figure.most:g})"
        missed = "" if figure.is_met else "  MISSED"
        print(f"{figure.name:52} {figure.value:10.1f} {figure.unit}{is_to_be}{missed}")
    sys.exit(0 if all(figure.is_met for figure in figures) else 1)


if __name__ == "__main__":
    main()
