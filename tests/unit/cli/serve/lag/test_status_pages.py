"""Burrow's pages about consumers."""

from __future__ import annotations

import httpx
from starlette.applications import Starlette

from cli.serve.lag.group_status import Rule
from cli.serve.lag.lag_figures import Ends, LagFigures
from cli.serve.lag.status_pages import StatusPages
from tests.unit.cli.serve.metrics.lag_cases import COMMITTED_MS, make_group, make_lag, make_row


def make_client(figures: LagFigures | None) -> httpx.AsyncClient:
    app = Starlette(routes=StatusPages("our own", lambda: figures).make_routes())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


async def test_a_status_has_what_is_not_ok_and_why() -> None:
    answer = await make_client(make_lag()).get("/v3/kafka/our%20own/consumer/billing/status")
    assert answer.status_code == 200
    told = answer.json()
    assert told["error"] is False
    status = told["status"]
    assert (status["cluster"], status["group"], status["status"]) == ("our own", "billing", "ERR")
    assert (status["partition_count"], status["totallag"]) == (3, 25)
    assert [(row["topic"], row["partition"], row["status"]) for row in status["partitions"]] == [
        ("orders", 0, "WARN"),
        ("payments", 3, "STOP"),
    ]
    assert status["partitions"][1]["rule"] == Rule.STOPPED.value
    assert status["maxlag"]["current_lag"] == 20
    assert status["maxlag"]["end"] == {
        "offset": 10,
        "timestamp": COMMITTED_MS,
        "observedAt": COMMITTED_MS,
        "lag": 20,
    }
    assert told["request"]["url"] == "/v3/kafka/our own/consumer/billing/status"


async def test_lag_has_all_partitions() -> None:
    told = (await make_client(make_lag()).get("/v3/kafka/our own/consumer/billing/lag")).json()
    rows = told["status"]["partitions"]
    assert [(row["partition"], row["current_lag"]) for row in rows] == [(0, 20), (1, 0), (3, 5)]


async def test_nothing_is_known_of_a_group_whose_ends_are_not() -> None:
    status = (await make_client(make_lag()).get("/v3/kafka/our own/consumer/dark/lag")).json()[
        "status"
    ]
    assert (status["status"], status["partitions"], status["maxlag"]) == ("NOTFOUND", [], None)


async def test_a_group_may_have_any_name() -> None:
    odd = 'a/b "c" <d>'
    group = make_group(make_row("orders", 0, 1, Ends(0, 2), Rule.STALLED))
    figures = LagFigures({odd: group}, {}, 0.0, 1.0, 0, 0)
    client = make_client(figures)
    told = (await client.get("/v3/kafka/our own/consumer/a%2Fb%20%22c%22%20%3Cd%3E/status")).json()
    assert told["status"]["group"] == odd
    assert (await client.get("/v3/kafka/our own/consumer")).json()["consumers"] == [odd]


async def test_what_there_is_not() -> None:
    client = make_client(make_lag())
    for path in ("our own/consumer/other/status", "other/consumer/billing/lag", "other/consumer"):
        answer = await client.get(f"/v3/kafka/{path}")
        assert (answer.status_code, answer.json()["error"]) == (404, True)
    assert (await client.get("/v3/kafka")).json()["clusters"] == ["our own"]
    assert (
        await make_client(None).get("/v3/kafka/our own/consumer/billing/lag")
    ).status_code == 404
