"""Requests that other sites let a browser make, or make under a name of theirs."""

from __future__ import annotations

import httpx
import pytest

from console.signin.hosts import is_own_name
from tests.support.console.browser import ORIGIN, Browser, read_tags


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("10.1.2.3", True),
        ("localhost:8080", True),
        ("LOCALHOST", True),
        ("app.localhost", True),
        ("muster.example:443", True),
        ("muster.example.", True),
        ("", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("muster.example.evil", False),
        ("[::1", False),
        ("127.0.0.1:8080@evil.example", False),
        ("muster.example:80:80", False),
        ("127.0.0.1.", True),
        ("[fe80::1%eth0]", True),
        ("127.0.0.1%evil.example", False),
        ("[localhost]", False),
        ("[muster.example]", False),
        ("[127.0.0.1]", False),
    ],
)
def test_which_names_are_ours(host: str, is_own: bool) -> None:
    assert is_own_name(host, frozenset({"muster.example"})) is is_own


async def test_a_name_that_is_not_ours_is_refused(browser: Browser) -> None:
    answer = await browser.get("/groups", {"host": "rebound.example"})
    assert answer.status_code == 421
    assert "set-cookie" not in answer.headers
    assert "console.hosts" in answer.text


async def test_what_another_site_asks_in_the_background_is_refused(browser: Browser) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    answer = await browser.get("/groups", headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


async def test_a_link_elsewhere_comes_back_with_the_cookie(browser: Browser) -> None:
    """The cookie is not sent with it: without the way round nobody would be signed in."""
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    answer = await browser.get("/groups", headers)
    assert answer.status_code == 200
    assert 'http-equiv="refresh"' in answer.text
    assert "set-cookie" not in answer.headers, "the browser has one already"


async def test_a_long_query_is_refused(browser: Browser) -> None:
    assert (await browser.get(f"/groups?q={'x' * 10_000}")).status_code == 414


@pytest.mark.parametrize("path", ["//evil.example/x", "///evil.example"])
async def test_no_page_links_to_another_server(browser: Browser, path: str) -> None:
    url = httpx.URL(ORIGIN).copy_with(raw_path=path.encode())
    answer = await browser.client.get(url)
    assert answer.status_code == 404
    links = [found.get("href") for tag, found in read_tags(answer.text) if tag == "a"]
    assert "/evil.example/x" in links or "/evil.example" in links
    assert not [link for link in links if link and link.startswith("//")]


@pytest.mark.parametrize("origin", ["null", "http://[", "http://[::1", "ftp://127.0.0.1:8080", ""])
async def test_a_form_from_nowhere_is_refused(browser: Browser, origin: str) -> None:
    answer = await browser.post("/signin", headers={"origin": origin})
    assert answer.status_code == 403
