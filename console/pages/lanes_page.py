"""Who owned what, when: the swim lanes of a group, and the moments at which it changed."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.responses import JSONResponse, Response

from console.pages.group_parts import (
    get_group_id,
    make_crumbs,
    parse_at,
    parse_number,
    read_wall_ms,
    render_as_of,
)
from console.site import Head, Page, Visit
from console.urls import make_url
from console.views.lanes_view import compute_lanes_view
from muster.v1 import history_pb2
from wording.commands import render_command

LANES: Final = 100
"""So many lanes are on a page."""
MOMENTS_MAX: Final = 2_000
"""The slider has the last so many moments."""
_TIME_MAX: Final = (1 << 62) - 1
_SPANS: Final = (("15 min", 900_000), ("1 h", 3_600_000), ("6 h", 21_600_000), ("1 d", 86_400_000))


async def show_lanes(visit: Visit) -> Response:
    """The lanes of a time: the hour up to a position, or up to now, unless another is asked for."""
    group_id = get_group_id(visit)
    as_of = parse_at(visit)
    span_ms = parse_number(visit, "span", 0, _TIME_MAX, default=_SPANS[1][1])
    token = visit.request.query_params.get("page", "")
    request = history_pb2.ListOwnershipsRequest(
        group_id=group_id, page_size=LANES, page_token=token
    )
    now_ms = read_wall_ms()
    at_ms: int | None = None
    if as_of is not None and as_of.WhichOneof("position") == "timestamp_ms":
        at_ms = as_of.timestamp_ms
    # Some of what came after the position is shown too, where there is any.
    until_ms = now_ms if at_ms is None else min(now_ms, at_ms + span_ms // 2)
    since_ms = max(until_ms - span_ms, 1) if span_ms else 0
    if at_ms is not None and until_ms < now_ms:
        request.until.timestamp_ms = until_ms
    request.since_ms = since_ms
    if as_of is not None and at_ms is None:
        # When that was, the answer tells.
        request.since_ms = 0
        request.until.CopyFrom(as_of)
    answer = await visit.ask("HistoryService", "ListOwnerships", request)
    if as_of is not None and at_ms is None:
        until_ms = at_ms = answer.end.timestamp_ms
        since_ms = max(until_ms - span_ms, 1) if span_ms else 0
    at = "" if as_of is None else render_as_of(as_of)
    # On a thread: it may be twenty thousand changes.
    view = await asyncio.to_thread(compute_lanes_view, answer, since_ms, until_ms, at_ms)
    next_url = ""
    if answer.next_page_token:
        next_url = make_url(
            "groups", group_id, "lanes", at=at, span=span_ms, page=answer.next_page_token
        )
    command = render_command("timeline", group_id)
    if since_ms:
        command += f" --since {since_ms} --until {until_ms}"
    head = Head(
        f"{group_id}: lanes",
        "groups",
        make_crumbs(group_id, "Lanes"),
        command,
        styles=("group.css",),
    )
    spans = [
        (text, make_url("groups", group_id, "lanes", at=at, span=each_ms), each_ms == span_ms)
        for text, each_ms in (*_SPANS, ("all", 0))
    ]
    return await visit.render(
        "lanes.html", head, group_id=group_id, view=view, spans=spans, next_url=next_url
    )


async def list_moments(visit: Visit) -> Response:
    """The moments at which the group changed: log offset, time and epoch of each."""
    group_id = get_group_id(visit)
    request = history_pb2.ListOwnershipsRequest(group_id=group_id, page_size=1)
    answer = await visit.ask("HistoryService", "ListOwnerships", request)
    last = answer.moments[-MOMENTS_MAX:]
    return JSONResponse([[each.log_offset, each.timestamp_ms, each.group_epoch] for each in last])


LANES_PAGES: Final = (
    Page("/groups/{id:segment}/lanes", show_lanes),
    Page("/groups/{id:segment}/moments", list_moments),
)
