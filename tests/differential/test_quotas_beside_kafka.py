"""Client quotas are altered and described by Muster as by Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from pprint import pformat
from typing import Any

import pytest

from tests.differential import quota_rows
from tests.differential.asks import Answers, Ask
from tests.differential.sides import admin
from tests.differential.sides.admin import ANSWERED_IN_S
from tests.differential.sides.peers import run_peers
from tests.support.wire.connection import Connection

pytestmark = [pytest.mark.long, pytest.mark.kafka]


def test_quotas(tmp_path: Path) -> None:
    with run_peers(tmp_path) as peers:
        of_kafka, of_muster = asyncio.run(ask_both(peers.kafka, peers.muster))
    differing = [
        f"{ask}\nKafka:  {pformat(expected, width=180)}\nMuster: {pformat(found, width=180)}"
        for ask, expected, found in zip(make_asks(), of_kafka, of_muster, strict=True)
        if expected != found
    ]
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing)


def make_asks() -> Iterator[Ask]:
    yield from quota_rows.alterations()
    yield from quota_rows.descriptions()


async def ask_both(kafka: str, muster: str) -> tuple[list[Any], list[Any]]:
    found = await asyncio.gather(ask_all(kafka), ask_all(muster))
    return found[0], found[1]


async def ask_all(address: str) -> list[Any]:
    connection = await Connection.open(address, "differential", ANSWERED_IN_S)
    try:
        await admin.wait_for_coordinator(connection)
        answers = Answers(connection, {})
        found = [await answers.ask(ask) for ask in quota_rows.alterations()]
        await wait_for_quotas(connection)
        return found + [await answers.ask(ask) for ask in quota_rows.descriptions()]
    finally:
        connection.close()


async def wait_for_quotas(connection: Connection) -> None:
    """Until the broker that is asked has what the controller has written last."""
    last = quota_rows.alter(quota_rows.entry({"user": "last"}, quota_rows.PERCENT))
    await connection.ask(last.key, last.version, **last.fields)

    async def are_seen() -> bool:
        asked = quota_rows.describe(("user", quota_rows.EXACT, "last"))
        found = await connection.ask(asked.key, asked.version, **asked.fields)
        return bool(found.entries)

    await admin.wait_until(are_seen, "the last quota is not there")
