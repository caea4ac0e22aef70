"""Fixtures of the SDK's tests: the same servers as the gRPC door's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from muster.connection import shared_clients
from tests.support.service.stand import Stand, running_stand


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    """A server with default settings and the topic ``orders`` of four partitions."""
    async with running_stand() as running:
        yield running


@pytest.fixture
async def brisk() -> AsyncIterator[Stand]:
    """A server that pings every 100 ms and expires members after a second."""
    async with running_stand(session_timeout_ms=1_000, heartbeat_interval_ms=100) as running:
        yield running


@pytest.fixture
async def steady() -> AsyncIterator[Stand]:
    """A server that pings every 100 ms, and whose members outlive it that the machine stands still.

    Client and server are one process here: in a session of a second a pause is a member's end.
    """
    async with running_stand(session_timeout_ms=30_000, heartbeat_interval_ms=100) as running:
        yield running


@pytest.fixture(autouse=True)
def no_shared_client_is_left() -> Iterator[None]:
    yield
    assert not shared_clients._SHARED
