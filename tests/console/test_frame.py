"""What every page of the console has: headers, navigation, errors in one line."""

from __future__ import annotations

from typing import NoReturn

import httpx
import pytest

from console.app import PAGES, make_app
from console.pages import actions_page
from console.pages.actions.action import Action
from console.site import Visit
from tests.support.console.browser import (
    ORIGIN,
    Browser,
    find_csrf,
    make_site,
    read_tags,
    read_text,
)
from tests.support.console.members import join
from tests.support.service.stand import Stand


async def test_the_start_is_the_list_of_groups(browser: Browser) -> None:
    answer = await browser.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/groups")


async def test_a_policy_forbids_what_is_not_ours(browser: Browser) -> None:
    policy = (await browser.get("/groups")).headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not [line for line in policy if "unsafe" in line]


PLAIN = sorted({page.path for page in PAGES if page.method == "GET" and "{" not in page.path})


@pytest.mark.parametrize("path", [path for path in PLAIN if path not in ("/", "/signin")])
async def test_no_page_has_a_script_or_a_style_inside(browser: Browser, path: str) -> None:
    answer = await browser.get(path)
    assert answer.status_code == 200
    assert "unsafe" not in answer.headers["content-security-policy"]
    tags = read_tags(answer.text)
    assert tags
    for tag, attributes in tags:
        assert tag != "style"
        assert tag != "script" or attributes.get("src")
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]


async def test_what_is_not_there_is_a_page_that_says_so(browser: Browser) -> None:
    answer = await browser.get("/nothing")
    assert answer.status_code == 404
    assert "There is no such page." in read_text(answer.text)


async def test_static_files_are_kept_under_the_name_of_their_content(browser: Browser) -> None:
    tags = read_tags((await browser.get("/groups")).text)
    style = next(found["href"] for tag, found in tags if found.get("rel") == "stylesheet")
    assert style is not None
    answer = await browser.get(style)
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    assert (await browser.get("/static/nothing.css")).status_code == 404


async def test_a_form_that_makes_a_page_fail_gets_the_page_of_an_error(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a form brought has been read, and cannot be read again."""

    def fail(visit: Visit, group_id: str) -> NoReturn:
        raise ZeroDivisionError("a bug")

    failing = Action("freeze", fail, fail)
    monkeypatch.setitem(actions_page.ACTIONS, "freeze", failing)
    app = make_app(make_site(stand.server.local_calls))
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 50_000), raise_app_exceptions=False)
    await join(stand, "g", "m-1")
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        csrf = find_csrf((await client.get("/groups/g/actions")).text)
        answer = await client.post(
            "/groups/g/actions/freeze", data={"csrf": csrf}, headers={"origin": ORIGIN}
        )
    assert answer.status_code == 500
    assert "The page could not be made." in read_text(answer.text)
    assert "a bug" not in answer.text
