"""Actions on a group in the console: previewed, and confirmed with what the preview's form has."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import httpx

from console.urls import make_url
from tests.support.console.browser import ORIGIN, Browser, find_csrf, read_tags, read_text

Fields = Sequence[tuple[str, str]]


async def preview(
    browser: Browser, group_id: str, action: str, fields: Fields = ()
) -> httpx.Response:
    """Send the form of an action."""
    # Of a group that is not there the page always has a form.
    csrf = find_csrf((await browser.get("/groups/nobody/actions")).text)
    url = make_url("groups", group_id, "actions", action)
    return await _send(browser, url, [("csrf", csrf), *fields])


async def confirm(browser: Browser, shown: httpx.Response) -> httpx.Response:
    """Press the button of a preview, which was shown."""
    assert shown.status_code == 200, read_text(shown.text)
    url, fields = read_form(shown.text)
    return await _send(browser, url, fields)


async def act(browser: Browser, group_id: str, action: str, fields: Fields = ()) -> httpx.Response:
    """Preview and confirm; what came of it."""
    done = await confirm(browser, await preview(browser, group_id, action, fields))
    assert done.status_code == 200, read_text(done.text)
    return done


def read_form(page: str) -> tuple[str, list[tuple[str, str]]]:
    """Where the form of a preview goes, and its fields."""
    url, fields = "", []
    for tag, attributes in read_tags(page):
        if tag == "form":
            url, fields = attributes["action"] or "", []
        elif tag == "input" and attributes.get("type") == "hidden":
            fields.append((attributes["name"] or "", attributes["value"] or ""))
    return url, fields


async def _send(browser: Browser, url: str, fields: Fields) -> httpx.Response:
    return await browser.client.post(
        url,
        content=urlencode(fields),
        headers={"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"},
    )
