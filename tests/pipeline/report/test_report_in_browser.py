"""The report as a browser shows it: nothing asked for, nothing wrong, all of it to be seen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.report.page import make_page
from tests.browser import Tab, open_browser
from tests.support.pipeline.report_figures import make_report
from tests.support.waiting import wait_until

LEAST_CONTRAST = 4.5
LEAST_PIXELS = 11

CONTRASTS = """
(() => {
  const read = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(
      v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const colour = read(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll('h1,h2,h3,p,a,td,th,dt,dd,small,li,caption,text')) {
    if (!node.textContent.trim() || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const isMark = node.classList.contains('on');
    const ink = read(node.tagName === 'text' ? style.fill : style.color);
    const paper = isMark ? read(getComputedStyle(node.previousElementSibling).fill) : behind(node);
    const [high, low] = [light(ink), light(paper)].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), node.tagName, node.textContent.slice(0, 40)]);
  }
  return found.sort((a, b) => a[0] - b[0]).slice(0, 3);
})()
"""
CHARTS = """
[...document.querySelectorAll('svg.chart')].map(chart => {
  const box = chart.getBoundingClientRect();
  const inside = [...chart.querySelectorAll('rect,text,path,line,circle')].map(
    node => node.getBoundingClientRect());
  const words = [...chart.querySelectorAll('text')];
  const boxes = [...chart.querySelectorAll('.tick')].map(node => node.getBoundingClientRect());
  const crossing = boxes.filter((one, i) => boxes.some((other, j) => j > i
    && one.left < other.right - 1 && other.left < one.right - 1
    && one.top < other.bottom - 2 && other.top < one.bottom - 2)).length;
  return {
    name: chart.id, width: box.width, height: box.height,
    marks: chart.querySelectorAll('rect,path').length,
    labels: [...chart.querySelectorAll('.label')].map(node => node.textContent),
    outside: inside.filter(b => b.left < box.left - 1 || b.right > box.right + 1
      || b.top < box.top - 1 || b.bottom > box.bottom + 1).length,
    crossing,
    smallest: Math.min(...words.map(node => parseFloat(getComputedStyle(node).fontSize)
      * box.width / 960)),
  };
})
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    made = datetime(2026, 11, 22, tzinfo=UTC)
    file.write_text(make_page(make_report(), made, "0.1.0"), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def tab(page: Path) -> Iterator[Tab]:
    with open_browser(page.parent / "profile") as tab:
        tab.show()
        tab.open(page)
        yield tab


@pytest.fixture(scope="module")
def charts(tab: Tab) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tab.evaluate(CHARTS)
    return found


def test_the_page_asks_for_itself_alone_and_says_nothing(tab: Tab, page: Path) -> None:
    assert tab.requests == [page.absolute().as_uri()]
    assert tab.errors == []


def test_every_chart_is_drawn_within_its_frame(charts: list[dict[str, Any]]) -> None:
    assert [chart["name"] for chart in charts] == [
        "rebalances-chart",
        "convergence-chart",
        "convergence-times-chart",
        "group-0-lanes",
        "group-1-lanes",
        "lag-chart",
        "expiry-chart",
    ]
    for chart in charts:
        name = chart["name"]
        assert chart["width"] > 800, name
        assert chart["height"] > 200, name
        assert chart["marks"] >= 2, name
        assert len(chart["labels"]) == 2, name
        assert all(chart["labels"]), name
        assert chart["outside"] == 0, name
        assert chart["crossing"] == 0, name
        assert chart["smallest"] >= LEAST_PIXELS, name


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_text_can_be_read(tab: Tab, dark: bool) -> None:
    tab.show(dark=dark)
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(20, 23, 28)") == dark
    for contrast, tag, text in tab.evaluate(CONTRASTS):
        assert contrast >= LEAST_CONTRAST, (tag, text)


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_never_wider_than_its_window(tab: Tab, width: int) -> None:
    tab.show(width=width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_nothing_has_to_be_scrolled_where_there_is_room(tab: Tab) -> None:
    tab.show()
    widths = tab.evaluate(
        "[...document.querySelectorAll('section > .scroll')]"
        ".map(part => part.scrollWidth - part.clientWidth)"
    )
    assert len(widths) > 8
    assert max(widths) == 0


def test_sections_are_reached_by_their_links(tab: Tab) -> None:
    links = tab.evaluate(
        "[...document.querySelectorAll('nav a')].map(a => a.getAttribute('href').slice(1))"
    )
    assert len(links) == 9
    assert tab.evaluate(f"{links}.every(name => document.getElementById(name).offsetHeight > 100)")


def test_a_group_is_chosen_searched_for_and_followed_to(tab: Tab) -> None:
    shown = "[...document.querySelectorAll('details.group')].filter(part => !part.hidden)"
    assert tab.evaluate(f"{shown}.length") == 20
    select = "const box = document.querySelector('nav select');"
    tab.evaluate(f"{{{select} box.value = 'group-4'; box.dispatchEvent(new Event('change'))}}")
    assert tab.evaluate(f"{shown}.map(part => [part.id, part.open])") == [["group-4", True]]
    tab.evaluate("document.querySelector('#busiest a[href=\"#group-7\"]').click()")
    wait_until(lambda: tab.evaluate(f"{shown}.length") == 20)
    assert tab.evaluate("document.getElementById('group-7').open")
    search = "const box = document.querySelector('nav input');"
    tab.evaluate(f"{{{search} box.value = 'PAYMENTS'; box.dispatchEvent(new Event('input'))}}")
    assert tab.evaluate(f"{shown}.map(part => part.id)") == ["group-4"]
    rows = "[...document.querySelectorAll('#busiest tbody tr')].filter(row => !row.hidden)"
    assert tab.evaluate(f"{rows}.map(row => row.cells[0].textContent)") == ["payments 🙂consumer"]
    tab.evaluate(f"{{{search} box.value = ''; box.dispatchEvent(new Event('input'))}}")
    assert tab.evaluate(f"{rows}.length") == 21


def test_a_list_is_sorted_by_a_column_and_its_rest_stays_last(tab: Tab) -> None:
    counts = (
        "[...document.querySelectorAll('#busiest tbody tr')].map(row => row.cells[1].textContent)"
    )
    before = tab.evaluate(counts)
    button = "document.querySelectorAll('#busiest thead button')[1]"
    tab.evaluate(f"{button}.click()")
    assert tab.evaluate(counts) == before
    tab.evaluate(f"{button}.click()")
    assert tab.evaluate(counts) == [*before[-2::-1], before[-1]]
    assert tab.evaluate(f"{button}.parentElement.ariaSort") == "ascending"


def test_an_assistant_is_told_of_every_chart(tab: Tab) -> None:
    tab.ask("Accessibility.enable")
    nodes = tab.ask("Accessibility.getFullAXTree")["nodes"]
    images = [node for node in nodes if node.get("role", {}).get("value") in ("image", "img")]
    assert len(images) > 40
    assert all(node["name"]["value"] for node in images)
