"""Every row of Kafka's tables is answered by Muster as by a real Kafka, request by request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pprint import pformat
from typing import Any

import pytest

from tests.differential.asks import PARTITIONS, Answers, Ask
from tests.differential.rows import ROWS
from tests.differential.runner import Peers
from tests.differential.sides import admin
from tests.differential.sides.admin import ANSWERED_IN_S
from tests.differential.sides.peers import run_peers
from tests.support.wire.connection import Connection

pytestmark = pytest.mark.kafka

# Who coordinates the transactions is not asked: they are not begun there.
KAFKAS = {"transaction.partition.verification.enable": False}
TOPICS = ("t", "u")


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    with run_peers(tmp_path_factory.mktemp("rows"), KAFKAS) as running:
        asyncio.run(prepare(running))
        yield running


async def prepare(peers: Peers) -> None:
    for address in (peers.kafka, peers.muster):
        connection = await Connection.open(address, "differential", ANSWERED_IN_S)
        await admin.wait_for_coordinator(connection)
        for name in TOPICS:
            assert not await admin.create_topic(connection, name, PARTITIONS)
        connection.close()


async def ask_all(address: str, asks: Iterator[Ask]) -> list[tuple[Ask, Any]]:
    """Each request with its answer."""
    connection = await Connection.open(address, "differential", ANSWERED_IN_S)
    try:
        topics = await admin.describe_topics(connection, TOPICS)
        answers = Answers(connection, {name: topic_id for name, (topic_id, _) in topics.items()})
        return [(ask, await answers.ask(ask)) for ask in asks]
    finally:
        connection.close()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_row(peers: Peers, row: Callable[[], Iterator[Ask]]) -> None:
    async def ask_both() -> tuple[list[tuple[Ask, Any]], list[tuple[Ask, Any]]]:
        return await asyncio.gather(ask_all(peers.kafka, row()), ask_all(peers.muster, row()))

    expected, found = asyncio.run(ask_both())
    assert expected
    differing = [
        f"{ask}\nKafka:  {pformat(of_kafka, width=180)}\nMuster: {pformat(of_muster, width=180)}"
        for (ask, of_kafka), (_, of_muster) in zip(expected, found, strict=True)
        if of_kafka != of_muster
    ]
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing[:5])
