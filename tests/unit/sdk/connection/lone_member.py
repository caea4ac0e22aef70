"""A program with one member, for tests that stop it or let it hang.

``python lone_member.py TARGET GROUP`` writes one line for each callback and, every 10 ms, what it
believes to own. A line on standard input blocks the event loop until the next line.
"""

from __future__ import annotations

import asyncio
import sys
import time

import muster
from muster.membership import Partitions


def say(event: str, partitions: Partitions, at: float | None = None) -> None:
    at = time.monotonic() if at is None else at
    indexes = ",".join(str(partition.partition) for partition in sorted(partitions))
    print(f"{at:.6f} {event} {indexes}", flush=True)


async def main(target: str, group_id: str) -> None:
    loop = asyncio.get_running_loop()

    def block() -> None:
        sys.stdin.readline()
        sys.stdin.readline()

    loop.add_reader(sys.stdin, block)
    member = muster.Member(
        target,
        group_id,
        topics=["orders"],
        on_assigned=lambda partitions: say("assigned", partitions),
        on_revoked=lambda partitions: say("revoked", partitions),
        on_lost=lambda partitions: say("lost", partitions),
    )
    async with member:
        while True:
            # The process may be stopped between the two: the time is of before.
            at = time.monotonic()
            say("owns", member.assignment, at)
            await asyncio.sleep(0.01)


asyncio.run(main(*sys.argv[1:]))
