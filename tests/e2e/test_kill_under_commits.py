"""``kill -9`` under commit load, again and again: no acknowledged commit is missing."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

from tests.server import MusterServer
from tests.support.wire.connection import Connection
from tests.support.wire.member import commit, connect, fetch_all

ROUNDS = 6
GROUPS = 8
PARTITIONS = 5
TOPIC = "orders"


class Committer:
    """Commits ever higher offsets and remembers what was acknowledged, and what was sent."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.sent = dict.fromkeys(range(PARTITIONS), -1)
        self.acknowledged = dict.fromkeys(range(PARTITIONS), -1)
        self.next_offset = 0

    async def run(self, address: tuple[str, int]) -> None:
        """Until the server goes away."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async with await connect(address) as client:
                while True:
                    await self._commit(client)

    async def _commit(self, client: Connection) -> None:
        self.next_offset += 1
        offsets = {
            partition: self.next_offset
            for partition in range(PARTITIONS)
            if (self.next_offset + partition) % 3
        }
        self.sent.update(offsets)
        errors = await commit(client, self.group_id, TOPIC, offsets)
        assert set(errors.values()) == {0}, errors
        self.acknowledged.update(offsets)

    async def check(self, address: tuple[str, int]) -> None:
        """What is stored is what was acknowledged last, or was sent after it."""
        async with await connect(address) as client:
            stored = await fetch_all(client, self.group_id)
        for partition, acknowledged in self.acknowledged.items():
            offset = stored.get((TOPIC, partition), -1)
            assert acknowledged <= offset <= self.sent[partition], (
                f"{self.group_id} {TOPIC}-{partition}: {acknowledged} was acknowledged and "
                f"{self.sent[partition]} sent, but {offset} is stored"
            )
            self.acknowledged[partition] = offset


async def one_round(server: MusterServer, committers: list[Committer], load_s: float) -> None:
    address = server.address("kafka")
    await asyncio.gather(*(committer.check(address) for committer in committers))
    running = [asyncio.create_task(committer.run(address)) for committer in committers]
    await asyncio.sleep(load_s)
    server.kill()
    await asyncio.gather(*running)


async def test_no_acknowledged_commit_is_lost(tmp_path: Path) -> None:
    rng = random.Random(848)
    server = MusterServer(tmp_path / "data", topics={TOPIC: PARTITIONS})
    committers = [Committer(f"group-{number}") for number in range(GROUPS)]
    for _ in range(ROUNDS):
        with server:
            await one_round(server, committers, 0.15 + rng.random() * 0.3)
    with server:
        address = server.address("kafka")
        await asyncio.gather(*(committer.check(address) for committer in committers))
    assert all(committer.next_offset > ROUNDS for committer in committers)
