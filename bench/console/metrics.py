"""Measures `/metrics` in front of many groups, at each granularity.

    python -m bench.console.metrics [--groups 10000] [--partitions 10] [--scrapes 5]

Prints for each granularity how long a scrape takes and what CPU, how large it is, and how long
another client waited at most meanwhile (for /livez, which is asked all the time); beside that how
long it waited where nothing was scraped. Exits with 1 if something is not as it is to be. It takes
two minutes, most of them for the first look at the lag of all groups.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from bench.console.browsers import drain_page, get, watch
from bench.console.lists import SETTINGS, make_groups, read_cpu_ms
from tests.server import MusterServer

GRANULARITIES: Final = ("none", "group", "topic", "partition")
SCRAPE_MS: Final = 1_000
"""A scrape of 10,000 groups takes at most so long."""
STALL_MS: Final = 20
"""So long another client waits at most."""
IDLE_S: Final = 3.0
REST_S: Final = 0.5
LOOK_S: Final = 90.0
AGE: Final = b"\nmuster_lag_age_seconds "


class Found(NamedTuple):
    """What scrapes of one server took."""

    took_ms: list[float]
    cpu_ms: float
    size: int
    waits_ms: list[float]
    idle_ms: list[float]


async def wait_for_look(server: MusterServer) -> None:
    """Until the lag of all groups has been looked at."""
    async with asyncio.timeout(LOOK_S):
        while True:
            page, _ = await get(*server.address("http"), "/metrics")
            if AGE in page:
                return
            await asyncio.sleep(2)


async def measure(server: MusterServer, scrapes: int) -> Found:
    """Scrape some times, with a rest after each."""
    place = server.address("http")
    idle_ms = await watch(place, asyncio.sleep(IDLE_S))
    await drain_page(*place, "/metrics")
    took_ms: list[float] = []
    size = 0

    async def scrape() -> None:
        nonlocal size
        for _ in range(scrapes):
            size, taken_ms = await drain_page(*place, "/metrics")
            took_ms.append(taken_ms)
            await asyncio.sleep(REST_S)

    before_ms = read_cpu_ms(server.pid)
    waits_ms = await watch(place, scrape())
    cpu_ms = (read_cpu_ms(server.pid) - before_ms) / scrapes
    return Found(took_ms, cpu_ms, size, waits_ms, idle_ms)


def report(granularity: str, found: Found) -> bool:
    """Print a line; whether it is as it is to be."""
    took_ms, stall_ms = statistics.median(found.took_ms), max(found.waits_ms)
    is_met = took_ms <= SCRAPE_MS and stall_ms <= STALL_MS
    line = (
        f"{granularity:10} {took_ms:6.0f} ms (slowest {max(found.took_ms):5.0f}), "
        f"{found.cpu_ms:5.0f} ms CPU, {found.size / 1e6:6.2f} MB, "
        f"another client at most {stall_ms:5.1f} ms (idle {max(found.idle_ms):4.1f})"
    )
    print(line if is_met else f"{line}  MISSED", flush=True)
    return is_met


def copy_servers(folder: Path, stopped: MusterServer) -> dict[str, MusterServer]:
    """A server for each granularity, each with the same groups."""
    servers = {}
    for name in GRANULARITIES:
        shutil.copytree(stopped.data_dir, folder / name)
        settings = {**SETTINGS, "metrics.granularity": name}
        servers[name] = MusterServer(folder / name, settings=settings)
    return servers


async def run(options: argparse.Namespace) -> bool:
    """Measure all granularities; whether all is as it is to be."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        topics = {"orders": options.partitions}
        with MusterServer(folder / "made", topics=topics, settings=SETTINGS) as server:
            began_s = time.perf_counter()
            await make_groups(server.grpc, options.groups, options.partitions)
            server.terminate()
        print(f"{options.groups} groups made in {time.perf_counter() - began_s:.0f} s", flush=True)
        servers = copy_servers(folder, server)
        for server in servers.values():
            stack.enter_context(server)
        await asyncio.gather(
            *(wait_for_look(server) for name, server in servers.items() if name != "none")
        )
        verdicts = []
        for granularity, server in servers.items():
            verdicts.append(report(granularity, await measure(server, options.scrapes)))
            server.kill()
        return all(verdicts)


def main() -> None:
    """Run from a command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--scrapes", type=int, default=5)
    sys.exit(0 if asyncio.run(run(parser.parse_args())) else 1)


if __name__ == "__main__":
    main()
