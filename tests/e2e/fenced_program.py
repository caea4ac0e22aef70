"""A program that writes to a store as the owner of partition 0, with its fencing token.

    python -m tests.e2e.fenced_program TARGET GROUP TOPIC STORE

Prints its token once it owns the partition. Then, at each line of its input, it writes once with
this token, as a thread would that knows nothing of the membership, and prints what became of it.
"""

from __future__ import annotations

import asyncio
import sys

import muster
from tests.e2e.guarded_store import open_store, write_order


async def main(target: str, group_id: str, topic: str, path: str) -> None:
    partition = muster.TopicPartition(topic, 0)
    store = open_store(path)
    async with muster.Member(target, group_id, topics=[topic], max_poll_interval_ms=None) as member:
        async for owned in member.changes():
            if partition in owned:
                break
        token = member.tokens[partition]
        print(token, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            is_written = write_order(store, group_id, partition, token, member.member_id)
            print("written" if is_written else "refused", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
