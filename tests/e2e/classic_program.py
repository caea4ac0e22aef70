"""A program with one member of a classic group, for tests that kill a real process.

    python -m tests.e2e.classic_program TARGET GROUP TOPIC SESSION_TIMEOUT_MS

Prints whether it leads when it has joined, then goes on until it is ended.
"""

from __future__ import annotations

import asyncio
import sys

import muster


async def main(target: str, group_id: str, topic: str, session_timeout_ms: str) -> None:
    async with muster.ClassicMember(
        target,
        group_id,
        topics=[topic],
        session_timeout_ms=int(session_timeout_ms),
        heartbeat_interval_ms=100,
    ) as member:
        print("leads" if member.is_leader else "follows", flush=True)
        while True:
            member.poll()
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
