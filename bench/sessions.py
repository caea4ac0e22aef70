"""Load generator: members of the SDK over gRPC sessions; prints one JSON object to stdout.

    python -m bench.sessions converge --target 127.0.0.1:50051 --topic orders --partitions 2000
    python -m bench.sessions idle --target 127.0.0.1:50051 --topic orders --partitions 2000

The counterpart of kload's subcommands of the same names on the Kafka protocol; the report has the
same figures. The topic must exist.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Awaitable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import muster
from bench.figures import Json
from bench.processes import read_cpu_seconds
from muster.membership import Partitions

SETTLE_S = 120.0
CONVERGE_S = 60.0
POLL_S = 0.002
"""Fine enough for tens of milliseconds; polling more often would distort the measurement."""


class NotSettled(RuntimeError):
    """The group has not settled, or did not stay settled."""


class Owners:
    """Partition owners by the members' callbacks, which revoke a partition before it moves."""

    def __init__(self, partitions: int) -> None:
        self._owners = [0] * partitions
        self._once = 0
        self.doubled = 0

    @property
    def are_complete(self) -> bool:
        """Whether each partition has exactly one owner."""
        return self._once == len(self._owners)

    def on_assigned(self, partitions: Partitions) -> None:
        for _, partition in partitions:
            self._owners[partition] += 1
            match self._owners[partition]:
                case 1:
                    self._once += 1
                case 2:
                    self._once -= 1
                    self.doubled += 1

    def on_given_up(self, partitions: Partitions) -> None:
        for _, partition in partitions:
            self._owners[partition] -= 1
            match self._owners[partition]:
                case 0:
                    self._once -= 1
                case 1:
                    self._once += 1


class Crowd:
    """The members of one group, spread over a few connections."""

    def __init__(self, arguments: argparse.Namespace, stack: AsyncExitStack) -> None:
        self._arguments = arguments
        self._stack = stack
        self._group_id = f"sessions-{os.urandom(4).hex()}"
        self.owners = Owners(arguments.partitions)
        self.members: deque[muster.Member] = deque()

    async def gather(self) -> float:
        """Let all members join; return the seconds until the group has settled."""
        started = time.monotonic()
        clients = [await self._connect() for _ in range(self._arguments.streams)]
        joining = []
        for index in range(self._arguments.members):
            member = self._make_member(clients[index % len(clients)])
            self.members.append(member)
            joining.append(member.join())
        await asyncio.gather(*joining)
        await self._wait(0, SETTLE_S)
        return time.monotonic() - started

    async def join_one(self) -> float:
        """Seconds from when a new member connects until all members own their final partitions."""
        epoch, started = self.compute_epoch(), time.monotonic()
        member = self._make_member(await self._connect())
        self.members.append(member)
        return await self._converge(member.join(), epoch, started)

    async def leave_one(self) -> float:
        """Seconds from when the oldest member starts to leave until the group has settled."""
        epoch, started = self.compute_epoch(), time.monotonic()
        return await self._converge(self.members.popleft().close(), epoch, started)

    async def disperse(self) -> None:
        await asyncio.gather(*(member.close() for member in self.members))

    def compute_epoch(self) -> int:
        """The common epoch of all members. Raises NotSettled if they differ or are unbalanced."""
        epochs = {member.epoch for member in self.members}
        sizes = Counter(len(member.assignment) for member in self.members)
        if len(epochs) != 1 or 0 in epochs:
            raise NotSettled(f"the members are at epochs {sorted(epochs)}")
        if not self.owners.are_complete or max(sizes) - min(sizes) > 1:
            raise NotSettled(f"the assignment is not balanced: members by size {dict(sizes)}")
        return epochs.pop()

    async def _converge(self, change: Awaitable[None], epoch: int, started: float) -> float:
        changing = asyncio.ensure_future(change)
        try:
            await self._wait(epoch, CONVERGE_S)
            ended = time.monotonic()
        finally:
            await changing
        self.compute_epoch()
        return ended - started

    async def _wait(self, floor: int, limit_s: float) -> None:
        """Wait until every member is above that epoch and every partition has one owner."""
        deadline = time.monotonic() + limit_s
        late = list(self.members)
        while late or not self.owners.are_complete:
            # Usually poll one member only: polling all would take the time that is measured.
            while late and late[-1].epoch > floor:
                late.pop()
            if not late and self.owners.are_complete:
                # Members may have passed an epoch before the last change was known.
                if len({member.epoch for member in self.members}) == 1:
                    return
                late = list(self.members)
            if time.monotonic() > deadline:
                raise NotSettled(f"not settled within {limit_s:.0f} s, {len(late)} are behind")
            await asyncio.sleep(POLL_S)

    async def _connect(self) -> muster.Client:
        return await self._stack.enter_async_context(muster.Client(self._arguments.target))

    def _make_member(self, client: muster.Client) -> muster.Member:
        return muster.Member(
            client,
            self._group_id,
            topics=[self._arguments.topic],
            on_assigned=self.owners.on_assigned,
            on_revoked=self.owners.on_given_up,
            on_lost=self.owners.on_given_up,
            max_poll_interval_ms=None,
        )


async def run_converge(arguments: argparse.Namespace) -> Json:
    async with AsyncExitStack() as stack:
        crowd = Crowd(arguments, stack)
        initial_s = await crowd.gather()
        await asyncio.sleep(arguments.warm_up)
        window = Window(arguments.pid)
        joins, leaves = [], []
        for _ in range(arguments.rounds):
            joins.append(await crowd.join_one())
            await asyncio.sleep(arguments.pause)
            leaves.append(await crowd.leave_one())
            await asyncio.sleep(arguments.pause)
        report = window.close()
        await crowd.disperse()
    return {
        "members": arguments.members,
        "partitions": arguments.partitions,
        "initial_ms": to_ms(initial_s),
        "join_ms": [to_ms(seconds) for seconds in joins],
        "leave_ms": [to_ms(seconds) for seconds in leaves],
        "double_owned": crowd.owners.doubled,
        **report,
    }


async def run_idle(arguments: argparse.Namespace) -> Json:
    async with AsyncExitStack() as stack:
        crowd = Crowd(arguments, stack)
        await crowd.gather()
        await asyncio.sleep(arguments.warm_up)
        window = Window(arguments.pid)
        await asyncio.sleep(arguments.seconds)
        report = window.close()
        crowd.compute_epoch()
        await crowd.disperse()
    return {
        "members": arguments.members,
        "partitions": arguments.partitions,
        "double_owned": crowd.owners.doubled,
        **report,
    }


class Window:
    """A measurement interval, with the CPU that server and generator used in it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._started = time.monotonic()
        self._server = read_cpu_seconds(pid)
        self._own = time.process_time()

    def close(self) -> Json:
        seconds = time.monotonic() - self._started
        server = read_cpu_seconds(self._pid) - self._server
        return {
            "seconds": round(seconds, 4),
            "server_cpu_seconds": round(server, 5),
            "server_cpu_ms_per_second": round(server * 1000 / seconds, 4),
            "client_cpu_seconds": round(time.process_time() - self._own, 5),
        }


def to_ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Members over gRPC sessions; JSON to stdout.")
    parser.add_argument("subcommand", choices=("converge", "idle"))
    parser.add_argument("--target", required=True, help="HOST:PORT of the server")
    parser.add_argument("--pid", type=int, required=True, help="process id of the server")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True, help="partitions of the topic")
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=20, help="connections the members share")
    parser.add_argument("--rounds", type=int, default=1, help="joins and leaves (converge)")
    parser.add_argument("--warm-up", type=float, default=2, help="seconds before measuring")
    parser.add_argument("--seconds", type=float, default=10, help="seconds to measure (idle)")
    parser.add_argument("--pause", type=float, default=1, help="seconds between changes (converge)")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    subcommand = run_converge if arguments.subcommand == "converge" else run_idle
    try:
        report = run_on_loop(subcommand(arguments))
    except (NotSettled, muster.MusterError, OSError) as error:
        print(f"sessions {arguments.subcommand}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(report))
    return 0


def run_on_loop(work: Coroutine[Any, Any, Json]) -> Json:
    """Run on uvloop if it is installed, so that the generator itself costs little."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


if __name__ == "__main__":
    sys.exit(main())
