"""The console in a real browser, with real members behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from console.urls import make_url
from muster.v1 import admin_pb2, types_pb2
from tests.console.browser.conftest import CLASSIC, GROUP, HOSTILE, LOCKED, TOPIC, Scene
from tests.support.console.chromium import Watched, open_page

PAGES_MAX = 80
NO_PAGES = ("/static", "/metrics", "/livez", "/readyz", "/version")


@pytest.fixture
def page(chromium: Browser, scene: Scene) -> Iterator[Watched]:
    """A page on which nothing goes wrong."""
    with open_page(chromium, scene.origin) as watched:
        yield watched
        assert watched.errors == []
        assert watched.foreign == []


def find_links(page: Watched) -> list[str]:
    """The pages of the console that a page links to, one for each kind of query."""
    links = page.page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)")
    found = []
    for link in links:
        url = urlsplit(link)
        if f"{url.scheme}://{url.netloc}" == page.origin and not url.path.startswith(NO_PAGES):
            found.append(f"{url.path}?{url.query}" if url.query else url.path)
    return found


def compute_kind(path: str) -> str:
    """Pages that differ in what a query asks for, or in whose page it is, are of one kind."""
    url = urlsplit(path)
    names = sorted(re.findall(r"(\w+)=", url.query))
    shape = re.sub(r"^/(groups|topics)/[^/]+", r"/\1/-", url.path)
    hostile = "hostile" if "%3Cb%3E" in path else ""
    return f"{hostile}{shape}?{names}"


# -------------------------------------------------------------------------------- every page


def test_every_page_that_can_be_reached_is_right(page: Watched) -> None:
    paths, seen, kinds = ["/"], set(), set()
    while paths and len(seen) < PAGES_MAX:
        path = paths.pop(0)
        if path in seen or compute_kind(path) in kinds:
            continue
        seen.add(path)
        kinds.add(compute_kind(path))
        assert page.open(path) == 200, path
        assert page.page.locator("h1").count() == 1, path
        assert not page.page.locator("main b:text('bold')").count(), path
        paths += find_links(page)
        assert page.errors == [], path
    shapes = {kind.split("?")[0] for kind in kinds}
    assert {
        "/groups", "/topics", "/log", "/migration", "/cluster", "/health", "/groups/-", "/topics/-",
        "/groups/-/actions", "/groups/-/whatif", "/groups/-/migration", "/groups/-/lanes",
    } <= shapes  # fmt: skip
    assert {kind for kind in shapes if kind.startswith("hostile/groups/-")}, shapes


def test_every_page_can_be_read_without_scripts(chromium: Browser, scene: Scene) -> None:
    with open_page(chromium, scene.origin, with_scripts=False) as page:
        for path, says in (
            ("/groups", GROUP),
            (make_url("groups", GROUP), "billing-1"),
            (make_url("groups", GROUP, "actions"), "Freeze rebalancing"),
            (make_url("groups", GROUP, "lanes"), TOPIC),
            (f"{make_url('groups', GROUP, 'whatif')}?ask=1&add=1", "partitions would move"),
            (make_url("groups", CLASSIC, "migration"), "group.protocol=consumer"),
            ("/topics", TOPIC),
            (make_url("topics", TOPIC), GROUP),
            (make_url("log", group=GROUP), "CONSUMER_GROUP_METADATA"),
        ):
            assert page.open(path) == 200
            assert says in page.page.locator("main").inner_text(), path


def test_a_hostile_id_is_text(page: Watched) -> None:
    for further in ((), ("actions",), ("whatif",), ("migration",), ("lanes",)):
        assert page.open(make_url("groups", HOSTILE, *further)) == 200
        heading = page.page.locator("h1")
        expect(heading).to_contain_text("<b>bold</b>")
        assert not page.page.locator("h1 b").count()
        # An escape has a form that can be seen, or none at all.
        assert "\x1b" not in page.page.locator("body").inner_text()
    page.open(make_url("log", group=HOSTILE))
    expect(page.page.locator("#records")).to_contain_text("<b>bold</b>")


# ------------------------------------------------------------------------------- live, and past


def test_a_rebalance_is_seen_live(page: Watched, scene: Scene) -> None:
    scene.wait_for_members(2)
    page.open(make_url("groups", GROUP))
    expect(page.page.locator("#live")).to_contain_text("Live")
    expect(page.page.locator("#count")).to_have_text("2")
    epoch = int(page.read("#epoch"))
    scene.crew.join("billing-3", GROUP, TOPIC)
    expect(page.page.locator("#count")).to_have_text("3")
    expect(page.page.locator("#members")).to_contain_text("billing-3")
    scene.wait_for_members(3)
    expect(page.page.locator("#state")).to_contain_text("Stable")
    assert int(page.read("#epoch")) > epoch
    expect(page.page.locator("#timeline")).to_contain_text("joined")
    scene.crew.leave("billing-3")
    expect(page.page.locator("#count")).to_have_text("2")
    expect(page.page.locator("#members")).not_to_contain_text("billing-3")
    scene.wait_for_members(2)


def test_the_slider_shows_the_past_as_it_was(page: Watched, scene: Scene) -> None:
    page.open(make_url("groups", GROUP))
    page.page.locator("#open-slider").click()
    slider = page.page.locator("#moment")
    expect(slider).to_be_visible()
    moments = int(slider.get_attribute("max") or "0")
    assert moments >= 2
    for place in {0, moments // 2, moments - 1}:
        slider.evaluate(
            "(range, value) => { range.value = value; range.dispatchEvent(new Event('input')); }",
            str(place),
        )
        at = page.page.evaluate(
            "place => document.getElementById('slider').moments[place][0]", place
        )
        expect(page.page.locator("#group")).to_have_attribute("data-at", str(at))
        expect(page.page).to_have_url(re.compile(rf"at=offset%3A{at}$"))
        as_of = types_pb2.AsOf(offset=at)
        past = scene.admin.DescribeGroup(
            admin_pb2.DescribeGroupRequest(group_id=GROUP, as_of=as_of)
        ).group
        expect(page.page.locator("#epoch")).to_have_text(str(past.group_epoch))
        expect(page.page.locator("#count")).to_have_text(str(len(past.members)))
        shown = set(page.page.locator("#members tbody th").all_inner_texts())
        assert shown == {member.member_id for member in past.members}
    page.page.keyboard.press("n")
    expect(page.page.locator("#live")).to_contain_text("Live")


# ------------------------------------------------------------------------------------- actions


def test_an_action_is_previewed_and_done(page: Watched, scene: Scene) -> None:
    page.open(make_url("groups", GROUP))
    page.page.get_by_role("link", name="Actions", exact=True).click()
    page.page.get_by_role("button", name="Freeze…").click()
    expect(page.page.locator("#nothing-yet")).to_be_visible()
    assert not scene.describe().frozen_since_ms
    page.page.locator("#confirm").click()
    expect(page.page.locator("#done")).to_contain_text("is frozen")
    assert scene.describe().frozen_since_ms
    expect(page.page.locator("#command")).to_have_text(f"muster group freeze {GROUP}")
    page.open(make_url("groups", GROUP))
    expect(page.page.locator("#frozen")).to_be_visible()
    page.open(make_url("groups", GROUP, "actions"))
    page.page.get_by_role("button", name="Resume…").click()
    expect(page.page.locator("#effects")).to_contain_text("would move")
    page.page.locator("#confirm").click()
    expect(page.page.locator("#done")).to_contain_text("goes on")
    assert not scene.describe().frozen_since_ms


def test_who_may_not_sees_why_and_is_refused(page: Watched, scene: Scene) -> None:
    page.open(make_url("groups", LOCKED, "actions"))
    expect(page.page.locator("#freeze .obstacle")).to_contain_text(
        "You need the right ALTER_CONFIGS"
    )
    expect(page.page.locator("#freeze button")).to_have_count(0)
    # A form of another group, sent to this one's address.
    page.open(make_url("groups", GROUP, "actions"))
    form = page.page.locator("#freeze form")
    form.evaluate(
        "(form, url) => { form.action = url; }", make_url("groups", LOCKED, "actions", "freeze")
    )
    form.get_by_role("button").click()
    expect(page.page.locator("#refusal")).to_have_attribute("data-status", "403")
    assert not scene.describe(LOCKED).frozen_since_ms


def test_offsets_are_set_undone_and_not_over_another_change(page: Watched, scene: Scene) -> None:
    name = "retired"
    scene.crew.join("retired-1", name, TOPIC)
    scene.wait_for_members(1, name)
    scene.crew.leave("retired-1")
    actions = make_url("groups", name, "actions")
    page.open(actions)
    page.page.locator("#reset").get_by_label("--to-offset").check()
    page.page.locator("#reset #value").fill("7")
    page.page.locator("#reset-topics").fill(f"{TOPIC}:0,1")
    page.page.get_by_role("button", name="Set…").click()
    expect(page.page.locator("#offsets tbody tr")).to_have_count(2)
    stale = page.page.context.new_page()
    stale.goto(scene.origin + actions)
    stale.locator("#reset").get_by_label("--to-offset").check()
    stale.locator("#reset #value").fill("9")
    stale.locator("#reset-topics").fill(f"{TOPIC}:0")
    stale.get_by_role("button", name="Set…").click()
    page.page.locator("#confirm").click()
    expect(page.page.locator("#done")).to_contain_text("Offsets are set")
    stale.locator("#confirm").click()
    expect(stale.locator("#refusal")).to_have_attribute("data-status", "409")
    page.open(actions)
    page.page.get_by_role("button", name="Undo…").click()
    expect(page.page.locator("#effects")).to_contain_text("The reset of")
    page.page.locator("#confirm").click()
    expect(page.page.locator("#done")).to_contain_text("A change is undone")


# -------------------------------------------------------------------------------------- questions


def test_what_if_and_the_way_to_the_log(page: Watched) -> None:
    page.open(make_url("groups", GROUP))
    page.page.get_by_role("link", name="What if", exact=True).click()
    page.page.get_by_label("Members that join").fill("2")
    page.page.get_by_role("button", name="What would happen?").click()
    expect(page.page.locator("#summary")).to_contain_text("partitions would move")
    expect(page.page.locator("#command")).to_contain_text("--add 2")
    page.open(make_url("groups", GROUP))
    page.page.locator(".doing").get_by_role("link", name="Log").click()
    page.page.locator("#records summary").first.click()
    expect(page.page.locator("#records pre").first).to_be_visible()


def test_dark_and_light(chromium: Browser, scene: Scene) -> None:
    colours = []
    for is_dark in (False, True):
        with open_page(chromium, scene.origin, is_dark=is_dark) as page:
            page.open("/groups")
            read = "getComputedStyle(document.body).backgroundColor"
            colours.append(page.page.evaluate(read))
    assert colours[0] != colours[1]
