"""A program with one member, for tests that stop it or let it hang.

``python lone_member.py TARGET GROUP`` writes one line for each callback and, every 10 ms, what it
believes to own. A line with a number on standard input blocks the event loop so many seconds.
"""

from __future__ import annotations

import asyncio
import sys
import time

import muster
from muster.membership import Partitions


def say(event: str, partitions: Partitions) -> None:
    indexes = ",".join(str(partition.partition) for partition in sorted(partitions))
    print(f"{time.monotonic():.6f} {event} {indexes}", flush=True)


async def main(target: str, group_id: str) -> None:
    loop = asyncio.get_running_loop()

    def block() -> None:
        time.sleep(float(sys.stdin.readline()))

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
            say("owns", member.assignment)
            await asyncio.sleep(0.01)


asyncio.run(main(*sys.argv[1:]))
