"""A group that is looked at: its changes come as events, to each at its own pace."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import httpx
import pytest

from cli.serve.http import HttpServer
from console.app import make_app
from console.live import live_group
from console.live.live_group import LiveGroup
from console.live.live_groups import make_events
from console.site import Site
from console.streams import EventStreams
from coordinator.service.calls.local_calls import Visitor
from muster.v1 import admin_pb2, group_pb2, types_pb2
from security.identity import NOBODY
from tests.support.console.browser import Browser, make_site
from tests.support.console.members import Member, join
from tests.support.service.stand import Stand
from tests.support.waiting import until

VISITOR = Visitor(NOBODY, "ipv4:127.0.0.1:50000")


class Event(NamedTuple):
    """An event as a browser has it."""

    name: str
    tag: str
    data: Any


def parse(raw: bytes) -> Event:
    fields = dict(line.split(": ", 1) for line in raw.decode().strip().split("\n"))
    return Event(fields["event"], fields.get("id", ""), json.loads(fields["data"]))


class Reader:
    """Reads the events of a group."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        self._events = events

    async def read(self) -> Event:
        async with asyncio.timeout(20):
            return parse(await anext(self._events))

    async def read_until(self, words: str) -> Event:
        """The first event that has these words in a row."""
        while True:
            event = await self.read()
            if any(words in html for *_, html in event.data["rows"]):
                return event


@asynccontextmanager
async def reading(live: LiveGroup, tag: str) -> AsyncIterator[Reader]:
    async with aclosing(make_events(live, tag)) as events:
        yield Reader(events)


@pytest.fixture
def site(stand: Stand) -> Site:
    return make_site(stand.server.local_calls)


async def open_page(site: Site, group_id: str = "g") -> tuple[LiveGroup, str]:
    """Open the page of a group: how its group is followed, and the version that the page has."""
    async with Browser(site) as browser:
        page = await browser.get(f"/groups/{group_id}")
    assert page.status_code == 200, page.text
    found = re.search(r'data-live="[^"]*since=([0-9a-f]+-\d+)"', page.text)
    assert found is not None
    (live,) = (each for each in site.live._groups.values() if each.group_id == group_id)
    return live, found[1]


async def test_a_change_is_told_with_the_rows_that_it_changed(stand: Stand, site: Site) -> None:
    first = await join(stand, "g", "m-1")
    await join(stand, "g", "m-2")
    live, tag = await open_page(site)
    async with reading(live, tag) as reader:
        await asyncio.sleep(0.3)
        third = Member(stand.group_stub(), "g", "m-3", client_id="late")
        await third.beat()
        began_s = time.monotonic()
        event = await reader.read_until("late")
        assert time.monotonic() - began_s < 1.0, "it takes less than 0.1 s where nothing else runs"
        assert event.name == "change"
        assert not event.data["reset"]
        assert event.tag.startswith(live.fragments.boot)
        sections = {section for section, *_ in event.data["rows"]}
        assert {"facts", "members", "timeline"} <= sections
        await first.leave()
        while not (event := await reader.read()).data["gone"]:
            pass
        async with Browser(site) as browser:
            page = (await browser.get("/groups/g")).text
        assert event.data["gone"][0] not in re.findall(r'data-key="(\w+)"', page)


async def test_who_comes_back_gets_what_has_changed_since(stand: Stand, site: Site) -> None:
    await join(stand, "g", "m-1")
    live, tag = await open_page(site)
    async with reading(live, tag) as reader:
        await join(stand, "g", "m-2")
        last = (await reader.read_until("m-2")).tag
    await join(stand, "g", "m-3")
    async with reading(live, last) as reader:
        event = await reader.read_until("m-3")
        assert not event.data["reset"]
    async with reading(live, "0000-7") as reader:
        event = await reader.read()
        assert event.data["reset"]
        assert {"m-1", "m-2", "m-3"} <= set(re.findall(r"m-\d", str(event.data["rows"])))


async def test_a_slow_reader_gets_the_newest_and_nothing_queues_up(
    stand: Stand, site: Site
) -> None:
    await join(stand, "g", "m-0")
    live, tag = await open_page(site)
    async with reading(live, tag) as fast, reading(live, tag) as slow:
        await join(stand, "g", "m-1")
        before = await slow.read_until("m-1")
        for number in range(2, 12):
            await join(stand, "g", f"m-{number}")
            await fast.read_until(f"m-{number}")
        assert live.fragments.version > live.fragments.find_seen(before.tag) + 8
        assert len(live.fragments._changes) <= 2
        event = await slow.read()
        assert live.fragments.find_seen(event.tag) == live.fragments.version
        assert set(re.findall(r"m-\d+", str(event.data["rows"]))) >= {
            f"m-{number}" for number in range(2, 12)
        }


async def test_all_who_see_the_same_are_one_follower_with_the_same_text(
    stand: Stand, site: Site
) -> None:
    await join(stand, "g", "m-1")
    live, tag = await open_page(site)
    assert (await open_page(site))[0] is live
    async with reading(live, tag) as one, reading(live, tag) as other:
        waiting = asyncio.gather(one.read_until("m-2"), other.read_until("m-2"))
        await asyncio.sleep(0.2)
        assert len(stand.server._services.watched) == 1
        await join(stand, "g", "m-2")
        assert len(set(map(str, await waiting))) == 1
        assert live.readers == 2
    assert live.readers == 0
    await until(lambda: not len(stand.server._services.watched))


async def test_a_group_that_is_deleted_ends_its_streams(stand: Stand, site: Site) -> None:
    member = await join(stand, "g", "m-1")
    live, tag = await open_page(site)
    async with reading(live, tag) as reader:
        waiting = asyncio.create_task(reader.read_until("Empty"))
        await asyncio.sleep(0.2)
        await member.leave()
        await waiting
        await stand.admin_stub().DeleteGroup(admin_pb2.DeleteGroupRequest(group_id="g"))
        while (event := await reader.read()).name != "end":
            pass
        assert "g" in event.data
    async with Browser(site) as browser:
        assert (await browser.get("/groups/g")).status_code == 404


async def test_lag_is_looked_at_again_while_somebody_looks(
    stand: Stand, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_group, "LAG_INTERVAL_S", 0.05)
    member = await join(stand, "g", "m-1")
    await member.beat()
    live, tag = await open_page(site)
    async with reading(live, tag) as reader:
        waiting = asyncio.create_task(reader.read_until(">77<"))
        await asyncio.sleep(0.1)
        topics = [
            types_pb2.TopicOffsets(
                topic_name="orders",
                partitions=[types_pb2.PartitionOffset(partition=2, offset=77)],
            )
        ]
        await stand.group_stub().CommitOffsets(
            group_pb2.CommitOffsetsRequest(
                group_id="g", member_id="m-1", member_epoch=member.epoch, topics=topics
            )
        )
        event = await waiting
        assert [section for section, *_ in event.data["rows"]] == ["partitions"]


async def test_groups_that_nobody_looks_at_are_forgotten(stand: Stand, site: Site) -> None:
    for number in range(100):
        await join(stand, f"g-{number}", "m-1")
        await open_page(site, f"g-{number}")
    assert len(site.live) <= 65


# ------------------------------------------------------------------------------ a real connection


@asynccontextmanager
async def listening(site: Site) -> AsyncIterator[int]:
    async def metrics(accept: str) -> tuple[str, Sequence[bytes]]:
        return "text/plain", ()

    server = HttpServer(lambda: True, metrics, {}, console=make_app(site))
    port = await server.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        async with asyncio.timeout(5):
            await server.stop()


async def test_over_http_until_the_browser_goes(stand: Stand, site: Site) -> None:
    object.__setattr__(site, "streams", EventStreams(quiet_s=0.2))
    await join(stand, "g", "m-1")
    async with (
        listening(site) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        page = (await client.get("/groups/g")).text
        path = re.search(r'data-live="([^"]*)"', page)
        assert path is not None
        async with client.stream("GET", path[1]) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["cache-control"] == "no-store"
            lines = stream.aiter_lines()
            assert await anext(lines) == ":", "a comment, since nothing has happened"
            await join(stand, "g", "m-2")
            async with asyncio.timeout(10):
                while not (await anext(lines)).startswith("event: change"):
                    pass
            (live,) = site.live._groups.values()
            assert live.readers == 1
        await until(lambda: live.readers == 0)
        object.__setattr__(site, "streams", EventStreams(0))
        refused = await client.get(path[1])
        assert refused.status_code == 503
        object.__setattr__(site, "streams", EventStreams())
        async with client.stream("GET", path[1]) as stream:
            assert await anext(stream.aiter_lines()), "the server stops while it is open"
