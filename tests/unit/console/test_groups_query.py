"""What the list of groups is asked for, and what it says of what it shows."""

from __future__ import annotations

import pytest
import re2

from console.charts.spark import HEIGHT, WIDTH, compute_spark
from console.listing.group_index import Gathered, IndexRow
from console.listing.group_pages import ROWS_MAX, compute_gathered_page
from console.listing.page_starts import LISTS_MAX, PageStarts
from console.urls import decode_segment, encode_segment, is_own_path, make_url
from console.views.groups_query import GroupsQuery, Sort, parse_groups_query
from console.views.groups_view import (
    LINK_CHARS,
    Seen,
    compute_groups_view,
    compute_paging,
)
from console.views.lag_view import Lag, compute_group_lag, render_lag
from muster.v1 import admin_pb2, types_pb2
from wording.errors import InputError

HARD_IDS = (
    "plain",
    "a/b",
    "a/events",
    "?x=1&y",
    "#top",
    "..",
    ".",
    "",
    "~",
    "~~x",
    "%2F",
    "ünïcödé ☃",
    "a b+c",
    "\x1b[31mred",
    "new\nline",
    "\\",
    "//evil.example",
)


@pytest.mark.parametrize("group_id", HARD_IDS)
def test_an_id_is_one_segment_of_an_address(group_id: str) -> None:
    segment = encode_segment(group_id)
    assert segment not in ("", ".", "..")
    assert segment.isascii()
    assert not set(segment) & set("/?#&\\ \n")
    assert decode_segment(segment) == group_id
    assert is_own_path(make_url("groups", group_id))


@pytest.mark.parametrize(
    "asked",
    [{"sort": "size"}, {"page": "0"}, {"page": "-1"}, {"page": "x"}, {"page": "9" * 9},
     {"type": "x"}, {"state": "x"}, {"q": "x" * 81}],
)  # fmt: skip
def test_what_cannot_be_asked_is_told(asked: dict[str, str]) -> None:
    with pytest.raises(InputError):
        parse_groups_query(asked)


def test_an_address_says_what_is_asked_and_nothing_else() -> None:
    asked = {"q": "a&b", "type": "consumer", "sort": "lag", "page": "3", "x": "y"}
    query = parse_groups_query(asked)
    assert query == GroupsQuery("a&b", "Consumer", "", Sort.LAG, 3)
    assert query.make_url() == "/groups?q=a%26b&type=Consumer&sort=lag&page=3"
    assert parse_groups_query({}).make_url() == "/groups"


@pytest.mark.parametrize("search", ["a.b", "(", "[x]", "\\E", "ü☃", "a b", "*", "\n", "$^"])
def test_a_search_finds_its_text_and_nothing_else(search: str) -> None:
    pattern = GroupsQuery(search).compute_pattern()
    assert re2.fullmatch(pattern, f"before\n{search.upper()}after")
    assert not re2.fullmatch(pattern, "before after")


def test_the_command_shows_the_same() -> None:
    query = GroupsQuery("it's", "Classic", "Empty", Sort.MEMBERS)
    command = "muster group list --pattern '(?is).*it\\x{27}s.*' --type Classic --state Empty"
    assert query.make_command() == f"{command} --order members"


# ------------------------------------------------------------------------------------- lag


def make_offsets(*rows: tuple[int | None, int | None]) -> list[types_pb2.CommittedTopic]:
    partitions = [
        types_pb2.CommittedOffset(partition=number, offset=offset, end_offset=end)
        for number, (offset, end) in enumerate(rows)
    ]
    return [types_pb2.CommittedTopic(topic_name="orders", partitions=partitions)]


def find_lag(*rows: tuple[int | None, int | None]) -> Lag:
    steps = compute_group_lag(make_offsets(*rows))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            lag: Lag = end.value
            return lag


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([], "-"),
        ([(None, 9)], "-"),
        ([(5, None)], "-"),
        ([(5, 5)], "0"),
        ([(5, 9), (0, 1)], "5"),
        ([(9, 5)], "0"),
        ([(9, 5), (5, 9)], "4"),
        ([(5, 9), (5, None)], "at least 4"),
        ([(5, 5), (5, None)], "-"),
    ],
)
def test_a_lag_that_is_not_known_is_no_lag_of_0(
    rows: list[tuple[int | None, int | None]], shown: str
) -> None:
    assert render_lag(find_lag(*rows)) == shown


def test_offsets_beyond_the_end_are_told() -> None:
    assert find_lag((9, 5), (5, 9)).ahead == 1
    row = types_pb2.CommittedOffset(partition=0, offset=9, end_offset=5, is_end_reported=True)
    steps = compute_group_lag([types_pb2.CommittedTopic(topic_name="t", partitions=[row])])
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == Lag(0), "an end that was reported may have moved on"
    assert render_lag(None) == "…"


def test_many_offsets_are_counted_in_slices() -> None:
    rows: list[tuple[int | None, int | None]] = [(0, 1)] * 10_000
    steps = compute_group_lag(make_offsets(*rows))
    assert sum(1 for _ in steps) >= 5


# ------------------------------------------------------------------------------ pages and rows


def test_a_page_is_found_from_the_last_one_that_is_known_before_it() -> None:
    starts = PageStarts()
    assert starts.find("list", 7) == (1, "")
    starts.note("list", 3, "three")
    starts.note("list", 9, "nine")
    assert starts.find("list", 7) == (3, "three")
    assert starts.find("list", 9) == (9, "nine")
    assert starts.find("other", 9) == (1, "")


def test_the_starts_of_pages_are_bounded() -> None:
    starts = PageStarts()
    for number in range(LISTS_MAX + 1):
        starts.note(number, 2, "two")
    assert starts.find(0, 2) == (1, "")
    assert starts.find(1, 2) == (2, "two")


def make_row(name: str, lag: int | None, rebalanced_ms: int | None = None) -> IndexRow:
    return IndexRow(admin_pb2.GroupSummary(group_id=name), Lag(lag), rebalanced_ms, False)


def test_the_largest_lag_comes_first_and_what_is_not_known_last() -> None:
    rows = [make_row("a", 1), make_row("b", None), make_row("c", 30), make_row("d", 0)]
    page = compute_gathered_page(Gathered(rows, 9, 5), GroupsQuery(sort=Sort.LAG))
    assert [group.group_id for group in page.groups] == ["c", "a", "d", "b"]
    assert (page.total, page.looked_at, page.has_next) == (4, 4, False)


def test_the_last_rebalance_comes_first_page_by_page() -> None:
    rows = [make_row(f"g{number:03}", None, number) for number in range(ROWS_MAX + 10)]
    gathered = Gathered(rows, len(rows), 5)
    first = compute_gathered_page(gathered, GroupsQuery(sort=Sort.REBALANCE))
    second = compute_gathered_page(gathered, GroupsQuery(sort=Sort.REBALANCE, page=2))
    assert first.has_next
    assert not second.has_next
    shown = [group.group_id for group in (*first.groups, *second.groups)]
    assert shown == [row.summary.group_id for row in reversed(rows)]
    searched = compute_gathered_page(gathered, GroupsQuery("G00", sort=Sort.REBALANCE))
    assert searched.total == 10


def test_a_long_id_is_cut_and_has_no_link() -> None:
    groups = [admin_pb2.GroupSummary(group_id="x" * 30_000)]
    query = GroupsQuery()
    paging = compute_paging(query, 1, ROWS_MAX, 1, has_next=False)
    row = compute_groups_view(query, groups, {}, paging, 0).rows[0]
    assert len(row.text) < 200
    assert row.url == ""
    short = compute_groups_view(
        query, [admin_pb2.GroupSummary(group_id="y" * LINK_CHARS)], {}, paging, 0
    )
    assert short.rows[0].url


def test_a_row_says_when_and_why_the_group_rebalanced() -> None:
    seen = Seen(
        Lag(3, 0, 90_000), 1_000, "member m joined", samples=((0, 1), (60_000, 3)), is_lag=True
    )
    groups = [admin_pb2.GroupSummary(group_id="g", state="GROUP_STATE_PREPARING_REBALANCE")]
    paging = compute_paging(GroupsQuery(), 1, ROWS_MAX, 1, has_next=False)
    row = compute_groups_view(GroupsQuery(), groups, {"g": seen}, paging, 181_000).rows[0]
    assert (row.state, row.is_settled) == ("PreparingRebalance", False)
    assert (row.ago, row.when, row.cause) == (
        "3 m 0 s ago",
        "1970-01-01T00:00:01.000Z",
        "member m joined",
    )
    assert row.lag_hint == "the oldest record waits for 1 m 30 s"
    assert row.spark_hint == "lag from 1 to 3 in 1 m 0 s"


# ---------------------------------------------------------------------------------- spark lines


def test_a_spark_line_stays_in_its_place() -> None:
    spark = compute_spark([(0, 5), (10, 0), (20, 10)])
    assert spark is not None
    places = [tuple(map(float, place.split(","))) for place in spark.points.split()]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)
    assert places[0][0] < places[1][0] < places[2][0]
    assert places[1][1] > places[0][1] > places[2][1], "more is higher"
    assert (spark.low, spark.high) == (0, 10)


def test_a_line_needs_two_points_and_may_be_flat() -> None:
    assert compute_spark([]) is None
    assert compute_spark([(0, 1)]) is None
    flat = compute_spark([(0, 7), (0, 7)])
    assert flat is not None
    assert {place.split(",")[1] for place in flat.points.split()} == {"10.0"}
