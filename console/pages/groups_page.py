"""The list of groups."""

from __future__ import annotations

import time
from typing import Final

from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from console.listing.figures import Watched
from console.listing.group_pages import (
    ROWS_MAX,
    GroupPage,
    read_gathered_page,
    read_listed_page,
)
from console.listing.kept_pages import Made
from console.listing.viewers import Viewer
from console.site import Head, Page, Visit
from console.views.groups_query import STATES, TYPES, GroupsQuery, parse_groups_query
from console.views.groups_view import SORTS, Seen, compute_groups_view, compute_paging
from wording.times import render_span

WAIT_S: Final = 0.1
"""So long a page waits for figures that are not known; the rest is there when it is asked again."""


async def go_to_groups(visit: Visit) -> Response:
    """The start page."""
    return visit.redirect("/groups")


async def show_groups(visit: Visit) -> Response:
    """A page of the groups."""
    query = parse_groups_query(visit.request.query_params)
    viewer = visit.site.viewers.find(visit.visitor)

    async def make() -> Made:
        return await _make_list(visit, viewer, query)

    rows = await viewer.pages.find((*query.filters, query.page), make)
    if visit.request.query_params.get("part") == "list":
        return HTMLResponse(rows)
    head = Head(
        "Groups",
        "groups",
        command=query.make_command(),
        scripts=("groups.js",),
        styles=("groups.css",),
    )
    return await visit.render(
        "groups.html", head, query=query, rows=Markup(rows), types=TYPES, states=STATES, sorts=SORTS
    )


async def _make_list(visit: Visit, viewer: Viewer, query: GroupsQuery) -> Made:
    began_s = time.monotonic()
    if query.sort.is_listed:
        page = await read_listed_page(visit.ask, viewer.starts, query)
    else:
        page = await read_gathered_page(viewer.index, query)
    cost_ms = int((time.monotonic() - began_s) * 1_000)
    members = {group.group_id: group.members for group in page.groups}
    watched = await viewer.figures.look(members, WAIT_S)
    paging = compute_paging(
        query,
        len(page.groups),
        ROWS_MAX,
        page.total,
        has_next=page.has_next,
        note=_describe_order(page),
    )
    seen = {group_id: _see(each) for group_id, each in watched.items()}
    view = compute_groups_view(query, page.groups, seen, paging, time.time_ns() // 1_000_000)
    html = await visit.site.renderer.render("groups_list.html", {"view": view})
    is_gathered = page.age_ms is not None or not page.is_gathered
    return Made(html, cost_ms, view.is_whole and is_gathered)


def _see(watched: Watched) -> Seen:
    figures = watched.figures
    samples, is_lag = watched.members, False
    if watched.lags:
        samples, is_lag = watched.lags, True
    if figures is None:
        return Seen(samples=tuple(samples), is_lag=is_lag)
    last = figures.rebalance
    return Seen(
        figures.lag,
        None if last is None else last.began_ms,
        "" if last is None else last.cause,
        last is not None and last.goes_on,
        tuple(samples),
        is_lag,
    )


def _describe_order(page: GroupPage) -> str:
    """What there is to know of an order that the server does not have."""
    if not page.is_gathered:
        return ""
    if page.age_ms is None:
        return (
            f"In the order of what is gathered so far, of {page.looked_at} groups: it goes on in "
            "the background. Reload to see more."
        )
    return (
        f"In the order of figures that are gathered in the background, of {page.looked_at} groups; "
        f"the last round began {render_span(page.age_ms)} ago."
    )


GROUPS_PAGES: Final = (Page("/", go_to_groups), Page("/groups", show_groups))
