"""Clients that hang up while their connections are not being read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from gateway import wire_server as server_module
from gateway.apis.cluster.k18_api_versions import API as API_VERSIONS
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.waiting import until
from tests.unit.gateway.connection.test_wire_connection import Held, ask


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
async def rig(held: Held, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr(server_module, "_SWEEP_S", 0.05)
    async with run_rig(apis=(replace(held.api, is_large=True), API_VERSIONS)) as running:
        yield running


async def until_connections(rig: Rig, count: int) -> None:
    await until(lambda: rig.server.connections == count)


async def test_who_goes_while_its_requests_wait_is_noticed(rig: Rig) -> None:
    """Bug: the connection stayed for as long as the first request waited, here for ever."""
    client = await rig.connect()
    client.writer.write(ask(1) + ask(2))
    await until_connections(rig, 1)
    client.writer.close()
    await until_connections(rig, 0)


async def test_who_waits_for_its_answers_is_left_alone(rig: Rig, held: Held) -> None:
    client = await rig.connect()
    client.writer.write(ask(1) + ask(2))
    await until_connections(rig, 1)
    await asyncio.sleep(0.3)
    assert rig.server.connections == 1
    held.answer(0)
    assert await client.reader.readexactly(4)
    client.writer.close()
    await until_connections(rig, 0)
