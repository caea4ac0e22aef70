"""Burrow's pages about consumers, from what the last look has found.

    GET /v3/kafka
    GET /v3/kafka/CLUSTER/consumer
    GET /v3/kafka/CLUSTER/consumer/GROUP/status     partitions that are not OK
    GET /v3/kafka/CLUSTER/consumer/GROUP/lag        all partitions

Names and form are Burrow's; ``rule`` of a partition is ours, and says why it has its status.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cli.serve.lag.group_status import WINDOW, Commit, Status
from cli.serve.lag.lag_figures import GroupLag, LagFigures, PartitionLag

_JSON: Final = "application/json"


class StatusPages:
    """Answers for one cluster, under its name."""

    def __init__(self, cluster: str, find_lag: Callable[[], LagFigures | None]) -> None:
        self._cluster = cluster
        self._find_lag = find_lag

    def make_routes(self) -> list[BaseRoute]:
        """The routes of an application."""
        of_cluster = "/v3/kafka/{cluster}/consumer"
        return [
            Route("/v3/kafka", self._list_clusters),
            Route(of_cluster, self._list_groups),
            # The id of a group may have slashes.
            Route(of_cluster + "/{group:path}/status", self._show_status),
            Route(of_cluster + "/{group:path}/lag", self._show_lag),
        ]

    async def _list_clusters(self, request: Request) -> Response:
        return _answer(request, "cluster list returned", clusters=[self._cluster])

    async def _list_groups(self, request: Request) -> Response:
        if request.path_params["cluster"] != self._cluster:
            return _refuse(request, "cluster not found")
        figures = self._find_lag()
        names = [] if figures is None else list(figures.groups)
        return _answer(request, "consumer list returned", consumers=names)

    async def _show_status(self, request: Request) -> Response:
        return await self._show(request, shows_all=False)

    async def _show_lag(self, request: Request) -> Response:
        return await self._show(request, shows_all=True)

    async def _show(self, request: Request, *, shows_all: bool) -> Response:
        figures = self._find_lag()
        name = request.path_params["group"]
        group = None if figures is None else figures.groups.get(name)
        if group is None or request.path_params["cluster"] != self._cluster:
            return _refuse(request, "cluster or consumer not found")
        # A group may have very many partitions.
        text = await asyncio.to_thread(self._write, request, name, group, shows_all)
        return Response(text, media_type=_JSON)

    def _write(self, request: Request, name: str, group: GroupLag, shows_all: bool) -> str:
        rows = [row for row in group.rows if row.status is not None]
        shown = rows if shows_all else [row for row in rows if row.status is not Status.OK]
        worst = max(rows, key=lambda row: row.lag or 0, default=None)
        complete = sum(_compute_complete(row) == 1 for row in rows)
        status = {
            "cluster": self._cluster,
            "group": name,
            "status": group.status.name,
            "complete": complete / len(rows) if rows else 0,
            "maxlag": None if worst is None else _describe(worst),
            "partition_count": len(rows),
            "totallag": group.sums.lag or 0,
        }
        head = json.dumps({"error": False, "message": "consumer status returned"})
        about = json.dumps({"request": _describe_request(request)})
        # Row by row: one call that writes all of them would stop the event loop for as long.
        partitions = ",".join(json.dumps(_describe(row)) for row in shown)
        return (
            f'{head[:-1]}, "status": {json.dumps(status)[:-1]}, "partitions": [{partitions}]}}, '
            f"{about[1:]}"
        )


def _describe(row: PartitionLag) -> dict[str, Any]:
    assert row.status is not None
    assert row.rule is not None
    commits = row.window.commits()
    return {
        "topic": row.topic,
        "partition": row.partition,
        "owner": "",
        "client_id": "",
        "status": row.status.name,
        "start": _describe_commit(commits[:1]),
        "end": _describe_commit(commits[-1:]),
        "current_lag": row.lag,
        "complete": _compute_complete(row),
        "rule": row.rule.value,
    }


def _describe_commit(commits: Iterable[Commit]) -> dict[str, int] | None:
    for commit in commits:
        return {
            "offset": commit.offset,
            "timestamp": commit.at_ms,
            "observedAt": commit.at_ms,
            "lag": commit.lag,
        }
    return None


def _compute_complete(row: PartitionLag) -> float:
    """How much of the window is filled."""
    return len(row.window.commits()) / WINDOW


def _answer(request: Request, message: str, **fields: object) -> Response:
    told = {
        "error": False,
        "message": message,
        **fields,
        "request": _describe_request(request),
    }
    return Response(json.dumps(told), media_type=_JSON)


def _refuse(request: Request, message: str) -> Response:
    told = {"error": True, "message": message, "request": _describe_request(request)}
    return Response(json.dumps(told), 404, media_type=_JSON)


def _describe_request(request: Request) -> dict[str, str]:
    return {"url": request.url.path, "host": request.url.hostname or ""}
