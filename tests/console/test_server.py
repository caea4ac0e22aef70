"""The pages of the cluster and of its health, of the stand and of a real server."""

from __future__ import annotations

import http.client
from pathlib import Path

import httpx
import pytest

from model.access.acls import Operation, ResourceType
from tests.server import MusterServer
from tests.support.authorizers import Rights
from tests.support.console.browser import Browser, find_csrf, make_site, read_tags, read_text
from tests.support.service.fake_upstream import FakeUpstream
from tests.support.service.stand import running_stand


async def test_the_cluster(browser: Browser) -> None:
    page = (await browser.get("/cluster")).text
    assert "Cluster id cluster<b> Node id 7" in read_text(page)
    assert "stands in front of no other cluster" in read_text(page)


async def test_the_cluster_that_it_stands_in_front_of() -> None:
    async with (
        running_stand(upstream=FakeUpstream()) as stand,
        Browser(make_site(stand.server.local_calls)) as browser,
    ):
        page = read_text((await browser.get("/cluster")).text)
        assert "Release 3.9" in page
        assert "1 b1:9092 - muster:9201 2 b2:9092 r2 muster:9202" in page
        assert "muster upstream status" in page


async def test_health(browser: Browser) -> None:
    page = (await browser.get("/health")).text
    assert "Ready yes fine" in read_text(page)


@pytest.mark.parametrize("path", ["/cluster", "/health"])
async def test_both_need_the_right_to_describe_the_cluster(path: str) -> None:
    rights = Rights((Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"))
    async with (
        running_stand(authorizer=rights) as stand,
        Browser(make_site(stand.server.local_calls)) as browser,
    ):
        answer = await browser.get(path)
        assert answer.status_code == 403
        assert "User:ANONYMOUS is not authorized to DESCRIBE the cluster" in read_text(answer.text)
        assert "cluster<b>" not in read_text(answer.text)


def get(server: MusterServer, path: str, host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*server.address("http"), timeout=60)
    try:
        connection.request("GET", path, headers={} if host is None else {"host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_server_serves_its_console_beside_the_rest(tmp_path: Path) -> None:
    with MusterServer(
        tmp_path / "data",
        topics={"orders": 1},
        settings={"console.hosts": "muster.example"},
    ) as server:
        assert get(server, "/livez") == (200, "ok\n")
        for path in ("/groups", "/cluster", "/health"):
            status, page = get(server, path)
            assert status == 200, page
            assert read_tags(page)
        assert "log partition" in get(server, "/cluster")[1].lower()
        assert get(server, "/groups", "muster.example:443")[0] == 200
        assert get(server, "/groups", "evil.example")[0] == 421


def test_a_server_without_a_console_has_no_pages(tmp_path: Path) -> None:
    with MusterServer(tmp_path / "data", settings={"console.enable": "false"}) as server:
        assert get(server, "/readyz")[0] == 200
        assert get(server, "/groups")[0] == 404


def test_where_grpc_asks_for_passwords_people_sign_in(tmp_path: Path) -> None:
    with MusterServer(
        tmp_path / "data",
        "--listen.grpc=SASL_PLAINTEXT://127.0.0.1:0",
        settings={"listener.name.grpc.sasl.enabled.mechanisms": "SCRAM-SHA-256"},
    ) as server:
        base = f"http://{server.http}"
        with httpx.Client(base_url=base, timeout=60) as client:
            assert client.get("/health").headers["location"] == "/signin?to=%2Fhealth"
            page = client.get("/signin").text
            fields = {found.get("name") for tag, found in read_tags(page) if tag != "meta"}
            assert {"user", "password"} <= fields
            assert "token" not in fields
            answer = client.post(
                "/signin",
                data={"csrf": find_csrf(page), "user": "alice", "password": "wrong"},
                headers={"origin": base},
            )
            assert answer.status_code == 401
            assert "This is not right" in read_text(answer.text)
            assert client.get("/livez").text == "ok\n"
