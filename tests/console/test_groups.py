"""The list of groups: what it shows, that ids are text, and twenty thousand of them."""

from __future__ import annotations

from collections import Counter

import pytest

from console.listing.group_pages import ROWS_MAX
from console.visible import show_all
from model.access.acls import Operation, ResourceType
from tests.support.authorizers import Rights
from tests.support.console.browser import Browser, make_site, read_tags, read_text
from tests.support.console.crowd import CountedCalls, commit, commit_all, join, leave
from tests.support.service.given_ends import GivenEnds
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until_answered

EVIL_IDS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</td></table><h1>gone</h1>",
    "\x1b[31mred\x1b]0;title\x07",
    "{{ 7 * 7 }}",
    "a/b?c#d",
    "&amp;",
    "..",
)
MANY = 20_000
PAGE_BYTES_MAX = 100_000


def find_groups(page: str) -> list[str]:
    """The groups of a page, in order."""
    return [found["data-group"] or "" for _, found in read_tags(page) if "data-group" in found]


async def test_there_may_be_no_groups(browser: Browser) -> None:
    assert "There are no groups yet" in read_text((await browser.get("/groups")).text)


async def test_ids_are_text(stand: Stand, browser: Browser) -> None:
    for group_id in EVIL_IDS:
        await join(stand.server.local_calls, group_id, f"<i>{group_id}", client_id="<u>evil")
    page = (await browser.get("/groups")).text
    shown = [str(show_all(group_id)) for group_id in EVIL_IDS]
    assert sorted(find_groups(page)) == sorted(shown)
    tags = read_tags(page)
    assert not {tag for tag, _ in tags} & {"img", "i", "u"}
    assert [tag for tag, found in tags if tag == "script" and "src" not in found] == []
    assert len([tag for tag, _ in tags if tag == "h1"]) == 1
    assert not [found for _, found in tags if "onmouseover" in found]
    assert "client <u>evil" in read_text(page)
    assert "\x1b" not in page
    assert r"\x1b[31mred\x1b]0;title\x07" in read_text(page)


async def test_a_row_tells_the_cause_of_the_last_rebalance(stand: Stand, browser: Browser) -> None:
    await join(stand.server.local_calls, "billing", "m-1", client_id="app")
    text = read_text((await browser.get("/groups")).text)
    assert "billing Consumer Stable 1 " in text
    assert "member m-1 (client app, host /10.1.2.3) joined" in text


async def test_searches_and_filters_are_the_server_s(stand: Stand, browser: Browser) -> None:
    calls = stand.server.local_calls
    for group_id in ("Pay-1", "pay-2", "ship-1"):
        await join(calls, group_id)
    await leave(calls, "pay-2")
    await commit(calls, "old", 1)
    for query, expected in (
        ("q=PAY", ["Pay-1", "pay-2"]),
        ("state=empty&type=consumer", ["pay-2"]),
        ("type=Classic", ["old"]),
        ("sort=type&q=1", ["Pay-1", "ship-1"]),
        ("q=.*", []),
    ):
        assert find_groups((await browser.get(f"/groups?{query}")).text) == expected, query
    assert "No group matches" in read_text((await browser.get("/groups?q=none")).text)


async def test_what_cannot_be_asked_is_a_line(browser: Browser) -> None:
    answer = await browser.get("/groups?sort=size")
    assert answer.status_code == 400
    assert "sort is one of id, type," in read_text(answer.text)


async def test_a_lag_is_known_or_it_is_not_shown() -> None:
    async with running_stand(end_offsets=GivenEnds(orders={0: 100})) as stand:
        calls = stand.server.local_calls
        await commit(calls, "known", 40)
        await commit(calls, "unknown", 40, partition=1)
        async with Browser(make_site(calls)) as browser:
            text = read_text((await browser.get("/groups?sort=id")).text)
            assert "known Classic Empty 0 0 60" in text
            assert "unknown Classic Empty 0 0 -" in text


async def test_groups_are_sorted_by_lag_when_that_is_gathered() -> None:
    async with running_stand(end_offsets=GivenEnds(orders={0: 100})) as stand:
        calls = stand.server.local_calls
        for group_id, offset in (("small", 90), ("none", 100), ("large", 10)):
            await commit(calls, group_id, offset)
        async with Browser(make_site(calls)) as browser:

            async def ask() -> str:
                return (await browser.get("/groups?sort=lag")).text

            page = await until_answered(ask, lambda page: "the last round began" in page)
            assert find_groups(page) == ["large", "small", "none"]


async def test_nobody_sees_what_grpc_would_not_show_him() -> None:
    rights = Rights(
        (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"),
        (Operation.DESCRIBE, ResourceType.GROUP, "hidden"),
    )
    async with running_stand(authorizer=rights) as stand:
        calls = stand.server.local_calls
        await commit_all(stand.runtime, ["hidden", "shown"])
        site = make_site(calls)
        async with Browser(site, peer="10.0.0.1") as one, Browser(site, peer="10.0.0.2") as two:
            page = (await one.get("/groups")).text
            assert find_groups(page) == ["shown"]
            assert "1 to 1 of 1 groups" in read_text(page)
            # Rights may depend on the host, so nothing is kept for somebody at another one.
            rights.is_denied = lambda asked: asked.host == "/10.0.0.2"
            assert find_groups((await two.get("/groups")).text) == []
            assert find_groups((await one.get("/groups")).text) == ["shown"]


async def test_a_part_is_the_list_alone(stand: Stand, browser: Browser) -> None:
    await commit(stand.server.local_calls, "billing", 1)
    part = (await browser.get("/groups?part=list")).text
    assert find_groups(part) == ["billing"]
    assert "<html" not in part


@pytest.fixture(scope="module")
def many_ids() -> list[str]:
    return [f"group-{number:05d}" for number in range(MANY)]


async def test_twenty_thousand_groups_page_by_page(stand: Stand, many_ids: list[str]) -> None:
    calls = CountedCalls(stand.server.local_calls)
    await commit_all(stand.runtime, many_ids)
    async with Browser(make_site(calls)) as browser:
        first = await browser.get("/groups")
        assert len(first.content) <= PAGE_BYTES_MAX
        assert find_groups(first.text) == many_ids[:ROWS_MAX]
        assert f"1 to {ROWS_MAX} of {MANY} groups" in read_text(first.text)
        asked = Counter(calls.asked)
        assert asked["ListGroups"] == 1
        assert asked["FetchOffsets"] <= ROWS_MAX
        assert asked.total() <= 1 + 2 * ROWS_MAX

        second = await browser.get("/groups?page=2")
        assert find_groups(second.text) == many_ids[ROWS_MAX : 2 * ROWS_MAX]
        calls.asked.clear()
        last = await browser.get("/groups?q=p-19&page=20")
        assert find_groups(last.text) == many_ids[-ROWS_MAX:]
        assert 'rel="next"' not in last.text
        assert Counter(calls.asked)["ListGroups"] == 2, "one to get there, whatever the page"
        assert (await browser.get(f"/groups?page={'9' * 5_000}")).status_code == 400
        beyond = await browser.get("/groups?q=p-19&page=21")
        assert "the list has 1000 groups" in read_text(beyond.text)
        found = await browser.get("/groups?q=OUP-0777")
        assert find_groups(found.text) == [f"group-0777{digit}" for digit in range(10)]
