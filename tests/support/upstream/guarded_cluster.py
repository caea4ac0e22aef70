"""A fake cluster that wants logins, and the client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.upstream.fake_broker import FakeCluster
from tests.support.upstream.fake_login import FakeLogin, make_security
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.cluster_settings import ClusterSettings


@dataclass
class GuardedCluster:
    """``login`` has the users; Muster has logged in once."""

    brokers: FakeCluster
    login: FakeLogin
    client: ClusterClient


@asynccontextmanager
async def guarded_cluster() -> AsyncIterator[GuardedCluster]:
    async with FakeCluster() as brokers:
        login = FakeLogin(brokers)
        security = make_security("SCRAM-SHA-256")
        settings: dict[str, Any] = {"security": security, "connect_timeout_ms": 2_000}
        client = ClusterClient(ClusterSettings(brokers.addresses, **settings))
        await client.start()
        try:
            yield GuardedCluster(brokers, login, client)
        finally:
            await client.stop()
