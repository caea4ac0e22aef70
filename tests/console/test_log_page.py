"""The log page on the log of a real Kafka: decoded, filtered, page by page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.golden.past_server import import_golden, running_past_server
from tests.support.console.browser import Browser, make_site, read_tags, read_text

GROUP = "o08-consumer-uniform"


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """The console of a server on the golden log."""
    import_golden(tmp_path / "store")
    async with (
        running_past_server(tmp_path / "store") as server,
        Browser(make_site(server.calls)) as opened,
    ):
        yield opened


def find_offsets(page: str) -> list[int]:
    return [int(found) for found in re.findall(r'data-offset="(\d+)"', page)]


async def test_records_are_decoded_and_paged(browser: Browser) -> None:
    first = (await browser.get(f"/log?group={GROUP}")).text
    text = read_text(first)
    assert "CONSUMER_GROUP_METADATA" in text
    assert f'"groupId": "{GROUP}"' in text
    assert f"muster log dump DATA_DIR --group {GROUP}" in text
    offsets, page = find_offsets(first), first
    while urls := [found["href"] for _, found in read_tags(page) if found.get("rel") == "next"]:
        page = (await browser.get(str(urls[0]))).text
        offsets += find_offsets(page)
    assert len(offsets) > 50
    assert offsets == sorted(set(offsets), reverse=True)


async def test_types_and_offsets_are_filters(browser: Browser) -> None:
    page = (await browser.get(f"/log?group={GROUP}&type=OFFSET_COMMIT")).text
    types = set(re.findall(r'data-type="(\w+)"', page))
    assert types == {"OFFSET_COMMIT"}
    offsets = find_offsets(page)
    before = (await browser.get(f"/log?group={GROUP}&before={offsets[0]}")).text
    assert max(find_offsets(before)) < offsets[0]
    whole = (await browser.get("/log?partition=47")).text
    assert len(find_offsets(whole)) == 50
    nothing = await browser.get(f"/log?group={GROUP}&until=5")
    assert "No record there" in read_text(nothing.text)
    assert (await browser.get("/log?partition=5000")).status_code == 404
