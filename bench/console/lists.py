"""Measures pages of the console, and the command that lists groups, in front of many groups.

    python -m bench.console.lists [--groups 20000]

Prints for each page how long the server takes and what CPU, how large it is, and how long another
client waited at most meanwhile (for /livez, which is asked all the time).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc.aio

from bench.console.browsers import get, watch
from muster.v1 import group_pb2, group_pb2_grpc, types_pb2
from tests.server import MusterServer

PAGES = (
    "/groups",
    "/groups?page=2",
    "/groups?page=400",
    "/groups?page=400",
    "/groups?q=777",
    "/groups?q=nothing",
    "/groups?sort=members",
    "/groups?sort=state&type=Consumer",
    "/groups?sort=lag",
    "/groups?sort=rebalance",
    "/cluster",
    "/health",
)
REPEATS = 5
AT_A_TIME = 50
HOUR_MS = 3_600_000
SETTINGS = {
    "group.consumer.session.timeout.ms": HOUR_MS,
    "group.consumer.max.session.timeout.ms": HOUR_MS,
    "log.level": "warning",
}
GATHER_S = 20
KEPT_S = 5.1


async def make_groups(target: str, count: int, partitions: int = 1) -> None:
    """Groups of one member each, with offsets of so many partitions."""
    async with grpc.aio.insecure_channel(target) as channel:
        stub = group_pb2_grpc.GroupServiceStub(channel)

        async def make(number: int) -> None:
            group_id = f"group-{number:06d}"
            offsets = [
                types_pb2.PartitionOffset(partition=partition, offset=number)
                for partition in range(partitions)
            ]
            topics = [types_pb2.TopicOffsets(topic_name="orders", partitions=offsets)]
            await stub.CommitOffsets(
                group_pb2.CommitOffsetsRequest(group_id=group_id, topics=topics)
            )
            await stub.Heartbeat(
                group_pb2.HeartbeatRequest(
                    group_id=group_id,
                    member_id=f"member-{number}",
                    client_id="console-bench",
                    rebalance_timeout_ms=HOUR_MS,
                    subscription=group_pb2.Subscription(subscribed_topic_names=["orders"]),
                )
            )

        for first in range(0, count, AT_A_TIME):
            await asyncio.gather(*map(make, range(first, min(count, first + AT_A_TIME))))


def read_cpu_ms(pid: int) -> float:
    """The CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1_000 / os.sysconf("SC_CLK_TCK")


async def measure(server: MusterServer, path: str) -> None:
    """Print a line about a page: the first time with its CPU, and the median of the next ones."""
    place, took_ms = server.address("http"), list[float]()
    before_ms = read_cpu_ms(server.pid)
    page, _ = await get(*place, path)
    cpu_ms = read_cpu_ms(server.pid) - before_ms
    # What is kept is made anew.
    await asyncio.sleep(KEPT_S)

    async def ask_again() -> None:
        for _ in range(1 + REPEATS):
            took_ms.append((await get(*place, path))[1])

    waits_ms = await watch(place, ask_again())
    first_ms, then_ms = took_ms[0], statistics.median(took_ms[1:])
    line = f"{cpu_ms:5.0f} ms CPU, {first_ms:5.0f} ms, {then_ms:5.0f} ms kept"
    size = f"{len(page) / 1_000:5.1f} kB"
    print(f"{path:34} {line}, {size}, probe at most {max(waits_ms):4.0f} ms", flush=True)


async def measure_command(server: MusterServer, *options: str) -> None:
    """Print how long `muster group list` takes from its start to its end, and its CPU."""
    words = (sys.executable, "-m", "cli", "group", "list", *options, "--server", server.grpc)
    took, cpu = list[float](), list[float]()
    for _ in range(1 + REPEATS):
        spent, began = read_children_cpu_ms(), time.perf_counter()
        await asyncio.to_thread(subprocess.run, words, check=True, capture_output=True, timeout=60)
        took.append((time.perf_counter() - began) * 1_000)
        cpu.append(read_children_cpu_ms() - spent)
    figures = f"{statistics.median(cpu):5.0f} ms CPU of its own, {statistics.median(took):5.0f} ms"
    print(f"muster group list {' '.join(options):28} {figures}", flush=True)


def read_children_cpu_ms() -> float:
    """The CPU time of commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1_000


async def run(groups: int) -> None:
    """Measure all pages, and the command that lists groups."""
    with (
        tempfile.TemporaryDirectory() as folder,
        MusterServer(Path(folder) / "data", topics={"orders": 1}, settings=SETTINGS) as server,
    ):
        began = time.perf_counter()
        await make_groups(server.grpc, groups)
        print(f"{groups} groups made in {time.perf_counter() - began:.0f} s", flush=True)
        await get(*server.address("http"), "/topics")
        for path in PAGES:
            await measure(server, path)
        for options in (("--limit", "50"), ("--sort", "members", "--limit", "50"), ("-o", "jsonl")):
            await measure_command(server, *options)
        await asyncio.sleep(GATHER_S)
        for path in ("/groups?sort=lag", "/groups?sort=rebalance&page=2"):
            await measure(server, path)


def main() -> None:
    """Run from a command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=20_000)
    asyncio.run(run(parser.parse_args().groups))


if __name__ == "__main__":
    main()
