"""A page of the list of groups: from the server's list, or from what is gathered of all groups."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from console.listing.asking import Ask
from console.listing.group_index import Gathered, GroupIndex, IndexRow
from console.listing.page_starts import PageStarts
from console.views.groups_query import GroupsQuery, Sort
from muster.v1 import admin_pb2
from wording.errors import InputError

ROWS_MAX: Final = 50
_JUMP_PAGES: Final = 20
_JUMPS_MAX: Final = 20


class GroupPage(NamedTuple):
    """The groups of a page, and of how many it is a part; ``age_ms`` as in ``Gathered``."""

    groups: Sequence[admin_pb2.GroupSummary]
    total: int
    has_next: bool
    is_gathered: bool = False
    looked_at: int = 0
    age_ms: int | None = None


async def read_listed_page(ask: Ask, starts: PageStarts, query: GroupsQuery) -> GroupPage:
    """A page in an order that the server has. Raises ``InputError``, ``CallRefused``."""
    key: Hashable = query.filters
    number, token = starts.find(key, query.page)
    jumps, step = 0, _JUMP_PAGES
    while number < query.page:
        if jumps == _JUMPS_MAX:
            raise InputError(
                f"Page {query.page} is far into the list: go on from page {number}, or search."
            )
        pages = min(step, query.page - number)
        answer = await ask(
            "AdminService", "ListGroups", query.make_request(pages * ROWS_MAX, token)
        )
        if not answer.next_page_token:
            return GroupPage((), answer.total_size, has_next=False)
        if pages > 1 and len(answer.groups) < pages * ROWS_MAX:
            # The server's pages are smaller.
            step = 1
            continue
        jumps += 1
        number, token = number + pages, answer.next_page_token
        starts.note(key, number, token)
    answer = await ask("AdminService", "ListGroups", query.make_request(ROWS_MAX, token))
    if answer.next_page_token:
        starts.note(key, query.page + 1, answer.next_page_token)
    return GroupPage(answer.groups, answer.total_size, bool(answer.next_page_token))


async def read_gathered_page(index: GroupIndex, query: GroupsQuery) -> GroupPage:
    """A page by lag or by the last rebalance, of the groups that were looked at so far."""
    gathered = index.find()
    # On a thread: it may be fifty thousand groups.
    return await asyncio.to_thread(compute_gathered_page, gathered, query)


def compute_gathered_page(gathered: Gathered, query: GroupsQuery) -> GroupPage:
    """The page of what is gathered; groups of which nothing is known come last."""
    key = _compute_lag_key if query.sort is Sort.LAG else _compute_rebalance_key
    found = [row for row in gathered.rows if query.matches(row.summary)]
    before = (query.page - 1) * ROWS_MAX
    first = heapq.nsmallest(min(before + ROWS_MAX, len(found)), found, key=key)
    return GroupPage(
        [row.summary for row in first[before:]],
        len(found),
        has_next=len(found) > before + ROWS_MAX,
        is_gathered=True,
        looked_at=len(gathered.rows),
        age_ms=gathered.age_ms,
    )


def _compute_lag_key(row: IndexRow) -> tuple[int, str]:
    return (1 if row.lag.records is None else -row.lag.records, row.summary.group_id)


def _compute_rebalance_key(row: IndexRow) -> tuple[int, str]:
    return (0 if row.rebalanced_ms is None else -row.rebalanced_ms, row.summary.group_id)
