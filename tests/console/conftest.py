"""Fixtures of the console's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.console.browser import Browser, make_site
from tests.support.service.stand import Stand, running_stand


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    """A server with default settings and the topic ``orders`` of four partitions."""
    async with running_stand() as running:
        yield running


@pytest.fixture
async def browser(stand: Stand) -> AsyncIterator[Browser]:
    """A browser that looks at the console of ``stand``."""
    async with Browser(make_site(stand.server.local_calls)) as opened:
        yield opened
