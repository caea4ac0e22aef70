"""The page of a group: what it shows now, in the past, and to whom."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from console.live import live_group
from console.pages import lanes_page
from console.urls import make_url
from console.views.lanes_view import compute_lanes_view
from console.visible import show_all
from model.access.acls import Operation, ResourceType
from muster.v1 import group_pb2, types_pb2
from tests.golden.past_server import import_golden, running_past_server
from tests.support.authorizers import Rights
from tests.support.console.browser import Browser, make_site, read_tags, read_text
from tests.support.console.members import join
from tests.support.service.stand import Stand, running_stand

GROUP = "o08-consumer-uniform"
CLASSIC_GROUP = "o01-classic-range"


async def test_members_epochs_and_partitions_are_shown(stand: Stand, browser: Browser) -> None:
    first = await join(stand, "payments", "m-1", client_id="billing")
    await first.beat()
    offsets = [types_pb2.PartitionOffset(partition=1, offset=42)]
    await stand.group_stub().CommitOffsets(
        group_pb2.CommitOffsetsRequest(
            group_id="payments",
            member_id="m-1",
            member_epoch=first.epoch,
            topics=[types_pb2.TopicOffsets(topic_name="orders", partitions=offsets)],
        )
    )
    answer = await browser.get("/groups/payments")
    assert answer.status_code == 200
    text = read_text(answer.text)
    assert "✓ Stable" in text
    assert "m-1 billing" in text
    assert "4 orders 0-3" in text
    assert "Nobody" not in text
    assert "orders 1 m-1 billing 42 - - -" in text, "a lag that is not known is none"
    assert "member m-1 (client billing" in text, "the cause of the rebalance"
    assert "muster group describe payments" in text
    assert ("a", "/groups") in [(tag, found.get("href")) for tag, found in read_tags(answer.text)]


async def test_who_waits_for_whom_is_said_with_since_when_and_until_when(
    stand: Stand, browser: Browser
) -> None:
    await join(stand, "g", "m-1")
    second = await join(stand, "g", "m-2")
    await second.beat()
    text = read_text((await browser.get("/groups/g")).text)
    assert re.search(r"m-2 waits for 2 orders [\d, -]+ from m-1 since 20[\d:TZ-]+", text)
    assert "which has not been asked for it yet" in text
    assert "waits for partitions waits for" not in text
    assert "… 1 not at the target yet" in text or "… 2 not at the target yet" in text


@pytest.mark.parametrize("group_id", ["a/b?c#d", "..", "<script>alert(1)</script>", "ä\u202e"])
async def test_any_id_is_text(stand: Stand, browser: Browser, group_id: str) -> None:
    evil = "\"><img src=x onerror='alert(1)'>"
    await join(stand, group_id, evil, client_id=evil)
    answer = await browser.get(make_url("groups", group_id))
    assert answer.status_code == 200
    assert str(show_all(group_id)) in read_text(answer.text)
    assert evil in read_text(answer.text)
    tags = read_tags(answer.text)
    assert not [tag for tag, _ in tags if tag == "img"]
    for tag, found in tags:
        assert tag != "script" or found.get("src")
        assert "style" not in found
        assert not [name for name in found if name.startswith("on")]


async def test_a_group_that_is_not_there_is_said_not_to_be(browser: Browser) -> None:
    answer = await browser.get("/groups/nobody")
    assert answer.status_code == 404
    assert "nobody" in read_text(answer.text)


async def test_who_may_not_describe_a_group_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rights = Rights()
    async with (
        running_stand(authorizer=rights) as stand,
        Browser(make_site(stand.server.local_calls)) as browser,
    ):
        await join(stand, "g", "m-1")
        assert (await browser.get("/groups/g")).status_code == 200
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
        assert (await browser.get("/groups/g")).status_code == 403
        monkeypatch.setattr(live_group, "ADMITTED_S", 0.0)
        answer = await browser.get("/groups/g/events")
        assert answer.status_code == 403
        assert "m-1" not in answer.text


@pytest.mark.parametrize("query", ["at=yesterday", "page=0", "page=x", "at=offset:-1"])
async def test_what_is_no_position_or_page_is_refused(browser: Browser, query: str) -> None:
    assert (await browser.get(f"/groups/g?{query}")).status_code == 400


async def test_a_server_without_a_log_on_disk_has_no_past(stand: Stand, browser: Browser) -> None:
    await join(stand, "g", "m-1")
    assert (await browser.get("/groups/g?at=1s")).status_code == 501


# ------------------------------------------------------------------------------------- the past


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "store"
    import_golden(folder)
    return folder


def find_link(page: str, name: str) -> str:
    """Where the link with this id leads; empty without one."""
    return next(
        (found["href"] or "" for _, found in read_tags(page) if found.get("id") == name), ""
    )


async def test_each_change_is_shown_as_its_description_says(golden: Path) -> None:
    """And its links lead to the change before and the one after."""
    async with running_past_server(golden) as server, Browser(make_site(server.calls)) as browser:
        moments = (await browser.get(f"/groups/{GROUP}/moments")).json()
        assert len(moments) > 20
        links = (
            [""] + [make_url("groups", GROUP, at=f"offset:{each[0]}") for each in moments] + [""]
        )
        for number in (0, *range(1, len(moments) - 1, 5), len(moments) - 1):
            offset = moments[number][0]
            page = (await browser.get(links[number + 1])).text
            past = await server.describe(GROUP, types_pb2.AsOf(offset=offset))
            assert past is not None
            text = read_text(page)
            assert f"As of offset {offset} of log partition" in text
            assert f"Group epoch {past.group.group_epoch} " in text
            assert f"Target epoch {past.group.assignment_epoch} " in text
            rows = re.findall(r'class="id">([^<]*)</th>', page)
            assert rows == [member.member_id for member in past.group.members]
            for member in past.group.members:
                rack = f" rack {member.rack_id}" if member.rack_id else ""
                assert f"{member.client_host}{rack} {member.member_epoch} " in text
            assert f"muster group describe {GROUP} --as-of offset:{offset}" in text
            assert find_link(page, "previous") == links[number]
            assert find_link(page, "next") == links[number + 2]


async def test_beyond_the_history_it_says_so(golden: Path) -> None:
    async with running_past_server(golden) as server, Browser(make_site(server.calls)) as browser:
        answer = await browser.get(f"/groups/{GROUP}?at=offset:99999999")
        assert answer.status_code == 400
        assert "future" in read_text(answer.text)
        answer = await browser.get(f"/groups/{GROUP}?at=1")
        assert answer.status_code == 404


async def test_lanes_are_drawn_beside_the_event_loop(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: those of 20,000 changes held it for a tenth of a second."""
    threads: list[threading.Thread] = []

    def note(*asked: Any) -> Any:
        threads.append(threading.current_thread())
        return compute_lanes_view(*asked)

    monkeypatch.setattr(lanes_page, "compute_lanes_view", note)
    async with running_past_server(golden) as server, Browser(make_site(server.calls)) as browser:
        assert (await browser.get(f"/groups/{GROUP}/lanes?span=0")).status_code == 200
    assert threads
    assert threading.main_thread() not in threads


async def test_lanes_of_both_protocols_have_owners_gaps_and_what_is_withheld(golden: Path) -> None:
    async with running_past_server(golden) as server, Browser(make_site(server.calls)) as browser:
        page = (await browser.get(f"/groups/{GROUP}/lanes?span=0")).text
        lanes = [found["data-lane"] for _, found in read_tags(page) if "data-lane" in found]
        assert lanes == [f"t3-{n}" for n in range(3)] + [f"t8-{n}" for n in range(8)]
        for kind in ("owned", "withheld"):
            assert f'<g class="{kind}">' in page
        text = read_text(page)
        assert "which is to give it to" in text
        assert "nobody; " in text
        classic = (await browser.get(f"/groups/{CLASSIC_GROUP}/lanes?span=0")).text
        assert '<g class="owned">' in classic
        assert '<g class="withheld">' not in classic
        moments = (await browser.get(f"/groups/{GROUP}/moments")).json()
        offset, at_ms, _ = moments[10]
        for at in (f"offset:{offset}", at_ms):
            found = await browser.get(make_url("groups", GROUP, "lanes", at=at, span=300_000))
            assert 'class="mark"' in found.text
            assert '<g class="owned">' in found.text
        recent = read_text((await browser.get(f"/groups/{GROUP}/lanes")).text)
        assert "No partition had an owner" in recent


async def test_a_classic_group_and_one_of_offsets_alone_are_shown(golden: Path) -> None:
    async with running_past_server(golden) as server, Browser(make_site(server.calls)) as browser:
        moments = (await browser.get(f"/groups/{CLASSIC_GROUP}/moments")).json()
        offset = next(moment[0] for moment in moments if moment[2] == 1)
        answer = await browser.get(f"/groups/{CLASSIC_GROUP}?at=offset:{offset}")
        past = await server.describe(CLASSIC_GROUP, types_pb2.AsOf(offset=offset))
        assert past is not None
        text = read_text(answer.text)
        assert f"Generation {past.group.group_epoch} Protocol range" in text
        assert past.group.members[0].member_id in text
        assert "Target epoch" not in text
        simple = read_text((await browser.get("/groups/o18-offsets.simple")).text)
        assert "Empty" in simple
        assert "nobody" in simple
        lanes = await browser.get("/groups/o18-offsets.simple/lanes")
        assert lanes.status_code in (200, 404)
