"""The timeline of a group: rebalances and changes of offsets, each once, also of what is gone."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing

import pytest

from console.live import live_group
from console.live.live_groups import make_events
from muster.v1 import reset_pb2, reset_pb2_grpc, types_pb2
from tests.console.test_group_events import open_page
from tests.console.test_group_page import find_link
from tests.support.console.acting import act
from tests.support.console.browser import Browser, make_site, read_text
from tests.support.console.members import join
from tests.support.service.stand import Stand
from tests.unit.service.admin.test_admin_service import make_groups


async def reset(stand: Stand, group_id: str, offset: int) -> None:
    topics = [types_pb2.TopicPartitions(topic_name="orders", partitions=[0])]
    await reset_pb2_grpc.ResetServiceStub(stand.channel()).ResetOffsets(
        reset_pb2.ResetOffsetsRequest(
            group_id=group_id,
            offset=offset,
            topics=topics,
            create_group=True,
        )
    )


def find_rows(page: str) -> list[str]:
    """What the rows of a timeline are about, the last one first: the epochs, or the change."""
    rows = re.findall(r"<tr data-key=.*?</tr>", page, re.DOTALL)
    found = [re.search(r"\d+ → \d+|change \d+", read_text(row)) for row in rows]
    return [each[0] for each in found if each is not None]


async def test_resets_and_deletions_are_told(stand: Stand, browser: Browser) -> None:
    await make_groups(stand)
    await act(browser, "loose", "reset", [("strategy", "to_offset"), ("value", "9")])
    assert "offsets_reset" in read_text((await browser.get("/groups/loose")).text)
    await act(browser, "loose", "delete-offsets", [("topic", "orders:0")])
    gone = await browser.get("/groups/loose/timeline")
    assert gone.status_code == 200, "its last offset is gone, and can come back by an undo"
    text = read_text(gone.text)
    told = [text.index(kind) for kind in ("offsets_deleted", "offsets_reset")]
    assert told == sorted(told), "the last one first"
    assert re.search(r"1 offset, by User:ANONYMOUS, change \d+", text)
    assert (await browser.get("/groups/nobody/timeline")).status_code == 404


async def test_pages_have_each_rebalance_and_each_change_once(
    stand: Stand, browser: Browser
) -> None:
    for number in range(13):
        member = await join(stand, "g", f"m-{number}")
        await member.leave()
        await reset(stand, "g", number)
    page = (await browser.get("/groups/g")).text
    found = find_rows(page[page.index('id="timeline"') :])
    assert len(found) > 20
    pages = 1
    while url := find_link(page, "older"):
        page = (await browser.get(url)).text
        found += find_rows(page)
        pages += 1
    epochs = [int(row.split()[-1]) for row in found if "→" in row]
    changes = [int(row.split()[-1]) for row in found if "→" not in row]
    assert epochs == sorted(set(epochs), reverse=True)
    assert changes == sorted(set(changes), reverse=True)
    assert (len(epochs), len(changes), pages) == (26, 13, 2)


async def test_a_reset_is_told_while_somebody_looks(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_group, "LAG_INTERVAL_S", 0.05)
    await make_groups(stand)
    live, tag = await open_page(make_site(stand.server.local_calls), "loose")
    await reset(stand, "loose", 9)
    async with aclosing(make_events(live, tag)) as events, asyncio.timeout(30):
        while b"offsets_reset" not in await anext(events):
            pass
