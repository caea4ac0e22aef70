"""`muster group undo` on a real server, with a real client: after a kill, and while it works."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.e2e.test_why import change, run
from tests.interop.confluent_client import ConfluentClient
from tests.server import MusterServer
from tests.support.waiting import until

GROUP = "undo"
WITHIN_S = 30.0
BEFORE = {0: 100, 1: 101}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": 2}) as running:
        yield running


def commit(server: MusterServer, offsets: dict[int, int]) -> None:
    """As kafka-consumer-groups.sh --reset-offsets does: a commit without a member."""
    admin = AdminClient({"bootstrap.servers": server.kafka})
    wanted = [TopicPartition("orders", number, offset) for number, offset in offsets.items()]
    request = [ConsumerGroupTopicPartitions(GROUP, wanted)]
    for future in admin.alter_consumer_group_offsets(request).values():
        future.result(WITHIN_S)


def delete(server: MusterServer) -> None:
    admin = AdminClient({"bootstrap.servers": server.kafka})
    for future in admin.delete_consumer_groups([GROUP]).values():
        future.result(WITHIN_S)


async def read(server: MusterServer) -> dict[int, int]:
    code, out, error = await run(server, "group", "offsets", GROUP, "-o", "json")
    assert code in (0, 3), error
    rows = json.loads(out)["offsets"] if code == 0 else []
    return {row["partition"]: int(row["offset"]) for row in rows}


async def list_changes(server: MusterServer) -> list[dict[str, Any]]:
    code, out, error = await run(server, "group", "undo", GROUP, "--list", "-o", "json")
    assert code == 0, error
    found: list[dict[str, Any]] = json.loads(out)["changes"]
    return found


@pytest.mark.timeout(120)
async def test_a_group_that_kafka_deleted_comes_back_after_a_kill(server: MusterServer) -> None:
    await asyncio.to_thread(commit, server, BEFORE)
    await asyncio.to_thread(delete, server)
    assert await read(server) == {}
    server.kill()
    server.start()
    (deleted,) = await list_changes(server)
    assert (deleted["kind"], deleted["offsets"]) == ("group_deleted", 2)
    await change(server, "group", "undo", GROUP, "--yes")
    assert await read(server) == BEFORE
    code, _, error = await run(server, "group", "undo", "nobody", "--yes")
    assert (code, error.count("\n")) == (3, 1)
    assert "nothing to undo" in error


@pytest.mark.timeout(120)
async def test_a_live_reset_is_undone_to_the_offsets_before(server: MusterServer) -> None:
    await asyncio.to_thread(commit, server, BEFORE)
    client = ConfluentClient(server, "a", group=GROUP)

    def poll_until_held() -> bool:
        client.poll()
        return client.held == {"orders-0", "orders-1"}

    async def polled(*words: str) -> None:
        """Run a command while the client polls."""
        going = asyncio.ensure_future(change(server, *words))
        while not going.done():
            await asyncio.to_thread(client.poll)
        await going

    try:
        await until(poll_until_held, within_s=WITHIN_S)
        await polled("group", "reset", GROUP, "--topic", "orders:0", "--to-offset", "7", "--yes")
        assert await read(server) == BEFORE | {0: 7}
        await polled("group", "undo", GROUP, "--yes")
        assert await read(server) == BEFORE
        changes = await list_changes(server)
        assert [each["kind"] for each in changes] == ["undo", "reset"]
        assert changes[0]["undoes"] == changes[1]["change"]
        await until(poll_until_held, within_s=WITHIN_S)
        assert not client.lost
    finally:
        client.consumer.close()
