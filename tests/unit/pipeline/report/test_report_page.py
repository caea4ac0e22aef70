"""The page of a report is self-contained, escapes group names, and counts what it omits."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from pipeline.report.charts import ChartText, draw_lines, name_letter
from pipeline.report.figures import BusyGroup, Convergence, Member, Ranking, RebalanceSeries, Report
from pipeline.report.page import make_page
from pipeline.report.reasons import explain_busy
from pipeline.report.scales import (
    DAY_MS,
    HOUR_MS,
    Scale,
    compute_ticks,
    compute_time_ticks,
    compute_window_ms,
    show_duration,
    show_short,
    show_time_tick,
)
from tests.support.pipeline.report_figures import LONG, START_MS, make_report

MADE = datetime(2026, 11, 22, tzinfo=UTC)
VOID = {"meta", "link"}


class Reader(HTMLParser):
    """Raises for unclosed elements, and keeps the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id" and value is not None]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(report: Report) -> tuple[str, Reader]:
    page = make_page(report, MADE, "0.1.0")
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    return page, reader


def test_the_page_asks_for_nothing_and_runs_its_own_script_alone() -> None:
    page, reader = read(make_report())
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert html.unescape(policy) == (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'"
    )
    assert reader.tags.count("script") == 1
    assert not {"img", "iframe", "object", "image", "use"} & set(reader.tags)
    loaded = {"src", "srcset", "data", "action", "xlink:href"}
    assert not [name for name, _ in reader.attributes if name in loaded or name.startswith("on")]
    links = [value for name, value in reader.attributes if name == "href"]
    assert all(link == "data:," or (link or "").startswith("#") for link in links)
    assert "url(" not in page
    assert "@import" not in page


def test_names_are_text_and_nothing_else() -> None:
    page, reader = read(make_report())
    assert page.count("<script") == 1
    assert "<b>blocked" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;amp;" in page
    for forbidden in ("\x00", "\u202e", "\ud800"):
        assert forbidden not in page
    page.encode("utf-8")
    assert LONG in "".join(reader.text)


def test_every_chart_is_named_and_told_and_no_id_is_there_twice() -> None:
    page, reader = read(make_report())
    assert len(reader.ids) == len(set(reader.ids))
    for name, value in reader.attributes:
        if name in ("aria-labelledby", "aria-describedby"):
            assert value in reader.ids
    for image in re.findall(r"<svg[^>]*>", page):
        assert 'role="img"' in image
        assert "aria-label" in image


def test_what_is_left_out_is_counted() -> None:
    _, reader = read(make_report())
    text = " ".join(reader.text)
    for counted in (
        "9,980 other groups",
        "76 more partitions are left out",
        "1,000 earlier intervals",
        "570 earlier rebalances",
        "580 other groups that are not ready",
        "S1 2, truncated 3",
        "12 offsets of 2 producers",
        "381 other groups",
        "123,456,789",
        "truncated 3",
    ):
        assert counted in text, counted


def test_the_worst_groups_lead_to_their_rebalances() -> None:
    page, reader = read(make_report())
    links = {value for name, value in reader.attributes if name == "href" and value != "data:,"}
    targets = {f"#{name}" for name in reader.ids}
    assert links <= targets
    assert {f"#group-{number}" for number in range(20)} <= links
    parts = page.split('<details id="group-')[1:]
    assert len(parts) == 20
    assert "orders-0, orders-1" in parts[0]
    assert "not converged" in parts[0]


def test_members_are_called_by_their_clients_and_all_are_in_the_legend() -> None:
    page, _ = read(make_report())
    (legend, _) = re.findall(r'<ul class="legend letters">(.*?)</ul>', page)
    items = re.findall(r'<li title="([^"]*)"><span[^>]*>([A-Z]+)</span><bdi>(.*?)</bdi>', legend)
    assert len(items) == 30
    assert items[0] == ("member-00", "A", "&lt;i&gt;0&lt;/i&gt;")
    assert items[1] == ("member-01", "B", "worker …ember-01")
    assert items[29][1] == "AD"
    assert len({name for _, _, name in items}) == 30


def test_a_page_of_10_000_groups_is_not_large() -> None:
    page, _ = read(make_report())
    assert len(page) < 1_000_000


def test_a_log_of_nothing_is_a_page() -> None:
    report = make_report()
    empty = replace(
        report,
        facts=replace(report.facts, start_ms=None, end_ms=None, records=0, groups={}, problems={}),
        series=RebalanceSeries(0, 1000, {}),
        convergence=Convergence([1.0, 10.0], [0], {}, 0, 1000, [None], [None], 0, 0),
        busiest=Ranking([], 0, 0),
        slowest=Ranking([], 0, 0),
        lanes=[],
        lag=None,
        expiry=None,
        details=[],
        readiness=None,
        audit=None,
        unknown_groups=["nobody"],
    )
    _, reader = read(empty)
    text = " ".join(reader.text)
    assert "It has no records." in text
    assert "No member of nobody owned a partition." in text
    assert "--end-offsets" in text


BUSY = BusyGroup("g", "consumer", 40, 0, 500, 900, 9000, 5, {"member_left": 40}, None, 0, [])


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (BUSY, "Always: a member left or timed out"),
        (
            replace(BUSY, causes={"member_left": 30, "topics_changed": 10}),
            "Mostly: a member left or timed out (30 of 40)",
        ),
        (
            replace(BUSY, causes={"member_left": 19, "member_joined": 21}),
            "Members come and go (21 joined, 19 left or timed out)",
        ),
        (
            replace(BUSY, worst_member=Member("m1", "billing-1"), worst_member_causes=25),
            "Always: a member left or timed out; billing-1 alone caused 25 of them",
        ),
        (
            replace(BUSY, worst_member=Member("m1"), worst_member_causes=25),
            "Always: a member left or timed out; m1 alone caused 25 of them",
        ),
        (replace(BUSY, never=2), "Always: a member left or timed out; 2 never converged"),
        (
            replace(BUSY, p50_ms=60_000),
            "Always: a member left or timed out; the median is 1 min, 60× the usual",
        ),
    ],
)
def test_why_a_group_is_among_the_worst(group: BusyGroup, words: str) -> None:
    assert explain_busy(group, 1_000) == words


def test_ticks_are_round_and_hold_the_highest() -> None:
    assert compute_ticks(0) == [0, 1]
    assert compute_ticks(1) == [0, 1]
    assert compute_ticks(47) == [0, 10, 20, 30, 40, 50]
    for highest in (1, 3, 7, 99, 100, 101, 12_345, 10**12):
        ticks = compute_ticks(highest)
        assert ticks[-1] >= highest
        assert len(ticks) <= 7


@pytest.mark.parametrize("span_ms", [0, 1, 999, 60_000, 7 * HOUR_MS, 30 * DAY_MS, 9_000 * DAY_MS])
def test_windows_and_times_are_few_and_tell_themselves_apart(span_ms: int) -> None:
    window_ms = compute_window_ms(START_MS, START_MS + span_ms)
    assert span_ms / window_ms <= 96
    ticks = compute_time_ticks(START_MS, START_MS + span_ms)
    assert len(ticks) <= 9
    assert ticks == sorted(ticks)
    assert all(START_MS <= tick <= START_MS + span_ms for tick in ticks)
    if span_ms < 200 * DAY_MS:
        assert len({show_time_tick(tick, ticks) for tick in ticks}) == len(ticks)


def test_a_scale_is_even_in_numbers_or_in_powers() -> None:
    assert Scale(0, 10, 100, 200).place(5) == 150
    assert Scale(0, 10, 100, 200).place(99) == 200
    assert Scale(1, 10_000, 0, 400, is_log=True).place(100) == pytest.approx(200)
    assert Scale(3, 3, 10, 20).place(3) == 10


def test_numbers_are_said_as_people_do() -> None:
    shown = [show_duration(ms) for ms in (None, 0, 42, 1_500, 90_000, HOUR_MS, 36 * HOUR_MS)]
    assert shown == ["–", "0 ms", "42 ms", "1.5 s", "1.5 min", "1 h", "1.5 d"]
    assert show_duration(99_700) == "1.7 min"
    assert [show_short(value) for value in (0, 950, 12_000, 3_400_000)] == [
        "0",
        "950",
        "12 k",
        "3.4 M",
    ]
    letters = [name_letter(number) for number in (0, 25, 26, 701, 702)]
    assert letters == ["A", "Z", "AA", "ZZ", "AAA"]


def test_a_value_is_drawn_when_it_was_so() -> None:
    """Lag is drawn at the end of its window: earlier, groups would fall behind too soon."""

    def find_places(*, is_at_end: bool) -> list[float]:
        words = ChartText("id", "title", "text", "label")
        drawn = draw_lines(words, {"g": [1, 2]}, 0, 1_000, str, is_at_end=is_at_end)
        return [float(place) for place in re.findall(r"[ML]([\d.]+) ", drawn)]

    middle, end = find_places(is_at_end=False), find_places(is_at_end=True)
    window = middle[1] - middle[0]
    assert [late - early for early, late in zip(middle, end, strict=True)] == [window / 2] * 2
