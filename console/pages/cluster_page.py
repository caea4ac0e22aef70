"""The server and the cluster behind it; how the server does."""

from __future__ import annotations

import time
from typing import Final

from starlette.responses import Response

from console.site import Head, Page, Visit
from console.views.cluster_view import compute_cluster_view
from console.views.health_view import compute_health_view
from coordinator.service.calls.local_calls import CallRefused
from muster.v1 import admin_pb2, upstream_pb2

_NO_CLUSTER: Final = "POLICY_VIOLATION"


async def show_cluster(visit: Visit) -> Response:
    """The page of the cluster."""
    transactions = await _count_transactions(visit)
    view = compute_cluster_view(
        await visit.site.find_facts(),
        await _find_upstream(visit),
        transactions,
        visit.site.versions,
        time.time_ns() // 1_000_000,
    )
    command = "muster version" if view.upstream is None else "muster upstream status"
    head = Head("Cluster", "cluster", command=command, styles=("server.css",))
    return await visit.render("cluster.html", head, view=view)


async def show_health(visit: Visit) -> Response:
    """How the server does."""
    await _count_transactions(visit)
    view = compute_health_view(await visit.site.find_facts(), time.time())
    head = Head("Health", "health", command="muster ready", styles=("server.css",))
    return await visit.render("health.html", head, view=view)


async def _count_transactions(visit: Visit) -> int:
    """How many are open; needs the right to describe the cluster. Raises ``CallRefused``."""
    request = admin_pb2.ListTransactionsRequest()
    return len((await visit.ask("AdminService", "ListTransactions", request)).transactions)


async def _find_upstream(visit: Visit) -> upstream_pb2.GetUpstreamResponse | None:
    """The cluster; ``None`` if the server stands in front of none."""
    try:
        found = await visit.ask("UpstreamService", "GetUpstream", upstream_pb2.GetUpstreamRequest())
    except CallRefused as refused:
        if refused.reason != _NO_CLUSTER:
            raise
        return None
    assert isinstance(found, upstream_pb2.GetUpstreamResponse)
    return found


CLUSTER_PAGES: Final = (Page("/cluster", show_cluster), Page("/health", show_health))
