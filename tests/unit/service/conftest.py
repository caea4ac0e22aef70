"""Fixtures of the gRPC service's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.service.stand import Stand, running_stand


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    """A server with default settings and the topic ``orders`` of four partitions."""
    async with running_stand() as running:
        yield running
