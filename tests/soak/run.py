"""One soak: a server, clients that stay, and rounds of clients that come and go."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.server import MusterServer
from tests.soak.figures import Gauge, Point
from tests.soak.load.steady import steady_load
from tests.soak.load.wire import LOG_PARTITIONS, PARTITIONS, SESSION_MS, TOPIC
from tests.soak.rounds import Rounds
from tests.soak.server import ASKED, CENSUS, COLLECTOR, LEAK

SETTINGS: Final[Mapping[str, object]] = {
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.initial.rebalance.delay.ms": 100,
    "offsets.retention.minutes": 1,
    "offsets.topic.num.partitions": LOG_PARTITIONS,
    "offsets.retention.check.interval.ms": 2_000,
    "offsets.transactional.commits": "all",
    "log.history.bytes": 1_000_000,
    "log.history.check.interval.ms": 1_000,
    "message.max.bytes": 50_000,
    "gateway.topics.segment.bytes": 60_000,
    "gateway.topics.retention.bytes": 120_000,
    "gateway.topics.producers.per.partition": 10,
    "grpc.request.ids.max": 20,
    "group.consumer.regex.refresh.interval.ms": 10_000,
}
"""What is bounded has small bounds, so that it is full when the first figure counts."""
WARM_UP_PART: Final = 6
"""A sixth of the time is no part of the window."""


@dataclass(frozen=True, slots=True)
class Soak:
    """What came of it: the points of the window, and what clients did and could not do."""

    points: Sequence[Point]
    done: Mapping[str, int]
    failed: Mapping[str, int]
    missing: Sequence[str]
    is_collecting: bool
    log: str


async def run_soak(
    seconds: float,
    churn_s: float,
    *,
    is_collecting: bool = True,
    leak: str = "",
    folder: str | None = None,
    with_others: bool = True,
    asked: str = "",
    only: str = "",
) -> Soak:
    """Run for so long, and print a line a round. Without ``is_collecting`` no garbage goes."""
    with ExitStack() as stack:
        path = _make_folder(stack, folder)
        census = path / "census.json"
        server = MusterServer(
            path / "data",
            topics={TOPIC: PARTITIONS},
            settings=SETTINGS,
            environment={
                CENSUS: str(census),
                COLLECTOR: "on" if is_collecting else "off",
                LEAK: leak,
                ASKED: asked,
                # A copy that counts must have no threads of gRPC.
                "GRPC_ENABLE_FORK_SUPPORT": "0",
            },
        )
        server.module = "tests.soak.server"
        stack.enter_context(server)
        gauge = Gauge(server, census)
        rounds = Rounds(server, gauge, only)
        began = time.monotonic()
        points: list[Point] = []
        async with steady_load(server, with_others=with_others) as missing:
            for line in missing:
                print(f"left out: {line}", flush=True)
            while not points or time.monotonic() - began < seconds:
                points.append(await rounds.run_round(churn_s))
                print(describe_point(points), flush=True)
        server.terminate()
        warm = seconds / WARM_UP_PART
        window = [point for point in points if point.at_s >= warm]
        log = server.output()
    return Soak(window, rounds.done, rounds.failed, missing, is_collecting, log)


def _make_folder(stack: ExitStack, kept: str | None) -> Path:
    if kept is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
    path = Path(kept)
    path.mkdir(parents=True, exist_ok=True)
    return path


def describe_point(points: Sequence[Point]) -> str:
    """One line of the last of them."""
    last, before = points[-1], points[-2] if len(points) > 1 else None
    figures = last.figures
    busy = (
        "" if before is None else f"{(last.cpu_s - before.cpu_s) / (last.at_s - before.at_s):.0%}"
    )
    return (
        f"{last.at_s:6.0f} s  {figures['resident memory'] / 1e6:6.1f} MB  "
        f"malloc {figures['memory of malloc'] / 1e6:5.1f} MB "
        f"({figures['memory of RocksDB'] / 1e6:.1f} RocksDB's)  "
        f"objects {figures['objects']:,.0f} ({figures['objects of our own']:,.0f} our own)  "
        f"garbage {sum(last.census.garbage.values()):,}  fds {figures['descriptors']:.0f}  "
        f"tasks {figures['tasks']:.0f}  files {figures['files']:.0f}  "
        f"series {figures['series']:.0f}  connections {last.connections}  cpu {busy}"
    )
