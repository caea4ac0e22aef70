"""The list of groups, as it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from console.charts.spark import Spark, compute_spark
from console.urls import encode_segment
from console.views.groups_query import GroupsQuery, Sort
from console.views.lag_view import Lag, render_lag
from muster.v1 import admin_pb2
from wording.groups import render_group_state, render_type
from wording.times import render_span, render_time

ID_CHARS: Final = 120
"""More of an id is not shown in a list."""
LINK_CHARS: Final = 1_000
"""No link leads to a longer id: few servers and browsers take such an address."""

SETTLED: Final = ("Stable", "Empty", "Dead")


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a group beside its entry in the list; ``samples`` are (ms, number)."""

    lag: Lag | None = None
    rebalanced_ms: int | None = None
    cause: str = ""
    goes_on: bool = False
    samples: Sequence[tuple[int, int]] = ()
    is_lag: bool = False


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group. ``ago`` and ``cause`` are of its last rebalance; times are wall ms or words."""

    text: str
    url: str
    group_type: str
    state: str
    is_settled: bool
    members: int
    epoch: int
    is_looked_at: bool
    lag: str
    lag_hint: str
    ago: str
    when: str
    cause: str
    spark: Spark | None
    spark_hint: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column's head: its text, and where to sort by it; ``is_sorted`` for the present order."""

    key: str
    text: str
    url: str
    is_sorted: bool
    is_number: bool


@dataclass(frozen=True, slots=True)
class Paging:
    """Where the page is in the list. ``note`` says what there is to know of its order."""

    first: int
    last: int
    total: int
    first_url: str = ""
    previous_url: str = ""
    next_url: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class GroupsView:
    """A page of the groups."""

    query: GroupsQuery
    columns: Sequence[Column]
    rows: Sequence[GroupRow]
    paging: Paging

    @property
    def is_whole(self) -> bool:
        """Whether somebody has looked at all of its groups."""
        return all(row.is_looked_at for row in self.rows)


SORTS: Final = (
    (Sort.ID, "Group", False),
    (Sort.TYPE, "Type", False),
    (Sort.STATE, "State", False),
    (Sort.MEMBERS, "Members", True),
    (Sort.EPOCH, "Epoch", True),
    (Sort.LAG, "Lag", True),
    (Sort.REBALANCE, "Last rebalance", False),
)


def compute_groups_view(
    query: GroupsQuery,
    groups: Sequence[admin_pb2.GroupSummary],
    seen: Mapping[str, Seen],
    paging: Paging,
    now_ms: int,
) -> GroupsView:
    """What is shown of these groups; ``now_ms`` is wall time."""
    columns = [
        Column(sort.value, text, query.make_url(sort=sort, page=1), sort is query.sort, is_number)
        for sort, text, is_number in SORTS
    ]
    rows = [_compute_row(group, seen.get(group.group_id, Seen()), now_ms) for group in groups]
    return GroupsView(query, columns, rows, paging)


def compute_paging(
    query: GroupsQuery, rows: int, rows_max: int, total: int, *, has_next: bool, note: str = ""
) -> Paging:
    """The way through the list from the page of the query."""
    before = (query.page - 1) * rows_max
    return Paging(
        first=before + 1 if rows else 0,
        last=before + rows if rows else 0,
        total=total,
        first_url=query.make_url(page=1) if query.page > 1 else "",
        previous_url=query.make_url(page=query.page - 1) if query.page > 1 else "",
        next_url=query.make_url(page=query.page + 1) if has_next else "",
        note=note,
    )


def _compute_row(group: admin_pb2.GroupSummary, seen: Seen, now_ms: int) -> GroupRow:
    group_id, state = group.group_id, render_group_state(group.state)
    segment = encode_segment(group_id)
    rebalanced_ms = seen.rebalanced_ms
    ago = "" if rebalanced_ms is None else render_span(max(0, now_ms - rebalanced_ms))
    return GroupRow(
        text=shorten(group_id),
        url=f"/groups/{segment}" if len(segment) <= LINK_CHARS else "",
        group_type=render_type(group.group_type),
        state=state,
        is_settled=state in SETTLED,
        members=group.members,
        epoch=group.group_epoch,
        is_looked_at=seen.lag is not None,
        lag=render_lag(seen.lag),
        lag_hint=_describe_lag(seen.lag),
        ago="goes on" if seen.goes_on else f"{ago} ago" if ago else "",
        when="" if rebalanced_ms is None else render_time(rebalanced_ms),
        cause=seen.cause,
        spark=compute_spark(seen.samples),
        spark_hint=_describe_samples(seen),
    )


def shorten(text: str) -> str:
    """As much of an id as fits a list."""
    return text if len(text) <= ID_CHARS else f"{text[:ID_CHARS]}…"


def _describe_lag(lag: Lag | None) -> str:
    if lag is None:
        return "not looked at yet"
    if lag.records is None and not lag.unknown:
        return "no offset is committed, or none that you may see"
    parts = []
    if lag.lag_ms:
        parts.append(f"the oldest record waits for {render_span(lag.lag_ms)}")
    if lag.unknown:
        parts.append(f"the end of {lag.unknown} partitions is not known")
    if lag.ahead:
        parts.append(f"the offsets of {lag.ahead} partitions are beyond their end")
    return "; ".join(parts)


def _describe_samples(seen: Seen) -> str:
    if len(seen.samples) < 2:
        return ""
    (began_ms, before), (ended_ms, now) = seen.samples[0], seen.samples[-1]
    what = "lag" if seen.is_lag else "members"
    return f"{what} from {before} to {now} in {render_span(ended_ms - began_ms)}"
