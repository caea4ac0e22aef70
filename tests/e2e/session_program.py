"""A program with one session member, for tests that stop or kill a real process.

    python -m tests.e2e.session_program TARGET GROUP TOPIC

Prints its member id when it has joined, then polls until it is ended.
"""

from __future__ import annotations

import asyncio
import sys

import muster


async def main(target: str, group_id: str, topic: str) -> None:
    async with muster.Member(target, group_id, topics=[topic]) as member:
        print(member.member_id, flush=True)
        while True:
            member.poll()
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
