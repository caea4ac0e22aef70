"""The page of one group, now and at any past position, and the events that keep it up to date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc
from markupsafe import Markup
from starlette.responses import Response

from console.live.fragments import Fragments, Render
from console.live.group_questions import (
    ask_changes,
    ask_past,
    ask_present,
    ask_rebalances,
)
from console.live.group_sections import Answers, RowMaker
from console.live.live_group import LiveGroup
from console.live.live_groups import make_events
from console.pages.group_parts import (
    get_group_id,
    join_sections,
    load_render,
    make_crumbs,
    parse_at,
    parse_number,
    parse_page,
    render_as_of,
)
from console.site import Head, Page, Visit
from console.urls import make_url
from console.views.timeline_view import compute_timeline, was_there_before
from coordinator.service.calls.local_calls import CallRefused
from coordinator.service.wire.answer_slices import run_steps
from muster.v1 import explain_pb2, history_pb2, reset_pb2, types_pb2
from wording.commands import render_command
from wording.positions import render_position

_SCRIPTS: Final = ("group.js",)
_STYLES: Final = ("group.css",)
_TIME_MAX: Final = (1 << 62) - 1


@dataclass(frozen=True, slots=True)
class Past:
    """The position that is shown."""

    offset: int
    at_ms: int
    text: str


async def show_group(visit: Visit) -> Response:
    """A group as it is, or as it was."""
    group_id = get_group_id(visit)
    as_of = parse_at(visit)
    page = parse_page(visit)
    if as_of is not None:
        return await _show_past(visit, group_id, as_of, page)
    render = await load_render(visit, group_id)
    if page > 1:
        maker = RowMaker()
        answers = await ask_present(visit.ask, group_id, maker.finder, page)
        fragments = await _make_fragments(answers, render, maker)
        return await _render(visit, group_id, fragments, answers)
    live = _find_live(visit, group_id, render)
    answers = await live.refresh(visit.visitor)
    live_url = make_url("groups", group_id, "events", since=live.fragments.tag)
    return await _render(visit, group_id, live.fragments, answers, live_url=live_url)


def _find_live(visit: Visit, group_id: str, render: Render) -> LiveGroup:
    site, visitor = visit.site, visit.visitor
    rights = site.viewers.compute_key(visitor)
    return site.live.find(site.calls, group_id, visitor, rights, render)


async def _make_fragments(answers: Answers, render: Render, maker: RowMaker) -> Fragments:
    fragments = Fragments(render)
    await run_steps(fragments.update(await run_steps(maker.make(answers))))
    return fragments


async def _show_past(visit: Visit, group_id: str, as_of: types_pb2.AsOf, page: int) -> Response:
    render = await load_render(visit, group_id)
    answers, position = await ask_past(visit.ask, group_id, as_of, page)
    offset = position.offset if position.HasField("offset") else -1
    before, after = await _find_neighbours(visit, group_id, offset)
    fragments = await _make_fragments(answers, render, RowMaker())
    text = render_position(position).removeprefix("as of ")
    past = Past(offset, max(position.timestamp_ms, as_of.timestamp_ms), text)
    return await _render(
        visit,
        group_id,
        fragments,
        answers,
        as_of=as_of,
        past=past,
        previous_url=before,
        next_url=after,
    )


async def _find_neighbours(visit: Visit, group_id: str, offset: int) -> tuple[str, str]:
    """Where the change before and the one after can be seen; empty where there is none."""
    request = history_pb2.ListOwnershipsRequest(group_id=group_id, page_size=1)
    try:
        answer = await visit.ask("HistoryService", "ListOwnerships", request)
    except CallRefused:
        return "", ""
    offsets = [moment.log_offset for moment in answer.moments]
    seen = sum(each <= offset for each in offsets)
    before = offsets[seen - 2] if seen > 1 else None
    after = offsets[seen] if seen < len(offsets) else None
    return _make_past_url(group_id, before), _make_past_url(group_id, after)


def _make_past_url(group_id: str, offset: int | None) -> str:
    return "" if offset is None else make_url("groups", group_id, at=f"offset:{offset}")


async def _render(
    visit: Visit,
    group_id: str,
    fragments: Fragments,
    answers: Answers,
    *,
    as_of: types_pb2.AsOf | None = None,
    past: Past | None = None,
    previous_url: str = "",
    next_url: str = "",
    live_url: str = "",
) -> Response:
    command = render_command("group", "describe", group_id)
    at = ""
    if as_of is not None:
        at = render_as_of(as_of)
        command += f" --as-of {at}"
    elif (last := answers.timeline.rebalances[:1]) and was_there_before(last[0]):
        previous_url = make_url("groups", group_id, at=last[0].began_ms - 1)
    older_url = ""
    if older_ms := answers.timeline.older_ms:
        older_url = make_url("groups", group_id, "timeline", until=older_ms)
    head = Head(
        group_id, "groups", make_crumbs(group_id), command, scripts=_SCRIPTS, styles=_STYLES
    )
    return await visit.render(
        "group.html",
        head,
        group_id=group_id,
        at=at,
        past=past,
        previous_url=previous_url,
        next_url=next_url,
        live_url=live_url,
        now_url=make_url("groups", group_id),
        lanes_url=make_url("groups", group_id, "lanes", at=past.at_ms if past else ""),
        moments_url=make_url("groups", group_id, "moments"),
        older_url=older_url,
        sections=join_sections(fragments),
    )


# ------------------------------------------------------------------------------- the timeline


async def show_timeline(visit: Visit) -> Response:
    """Older rebalances, a page at a time, and the changes of offsets between them."""
    group_id = get_group_id(visit)
    until_ms = parse_number(visit, "until", 0, _TIME_MAX, default=0)
    token = visit.request.query_params.get("page", "")
    # Up to where the page before has told of changes.
    changes_ms = parse_number(visit, "changes", 0, _TIME_MAX, default=until_ms)
    told, changes = await _ask_timeline(visit, group_id, until_ms, token, changes_ms)
    render = await load_render(visit, group_id)
    rows = Markup("").join(
        Markup(render("timeline", row, "")) for row in compute_timeline(told.rebalances, changes)
    )
    older_url = ""
    if told.next_page_token:
        older_url = make_url(
            "groups",
            group_id,
            "timeline",
            until=until_ms or "",
            page=told.next_page_token,
            changes=told.rebalances[-1].began_ms,
        )
    command = render_command("timeline", group_id, "--since", "365d")
    if until_ms:
        command += f" --until {until_ms}"
    head = Head(
        f"{group_id}: timeline",
        "groups",
        make_crumbs(group_id, "Timeline"),
        command,
        styles=_STYLES,
    )
    return await visit.render(
        "timeline.html", head, group_id=group_id, rows=rows, older_url=older_url
    )


async def _ask_timeline(
    visit: Visit, group_id: str, until_ms: int, token: str, changes_ms: int
) -> tuple[explain_pb2.ExplainGroupResponse, list[reset_pb2.OffsetChange]]:
    """A page of rebalances, and changes of offsets up to a time from its last one on."""
    try:
        told = await ask_rebalances(visit.ask, group_id, until_ms, token)
    except CallRefused as error:
        # A group that is gone may have changes alone.
        if error.status is not grpc.StatusCode.NOT_FOUND:
            raise
        changes, _ = await ask_changes(visit.ask, group_id, until_ms=changes_ms)
        if not changes:
            raise
        return explain_pb2.ExplainGroupResponse(), changes
    since_ms = told.rebalances[-1].began_ms if told.next_page_token else 0
    changes, _ = await ask_changes(visit.ask, group_id, since_ms=since_ms, until_ms=changes_ms)
    return told, changes


# --------------------------------------------------------------------------------- the events


async def send_events(visit: Visit) -> Response:
    """The changes of a group as server-sent events, from the version on that the browser has."""
    group_id = get_group_id(visit)
    render = await load_render(visit, group_id)
    live = _find_live(visit, group_id, render)
    await live.admit(visit.visitor)
    tag = visit.request.headers.get("last-event-id") or visit.request.query_params.get("since", "")
    return visit.follow(make_events(live, tag))


GROUP_PAGES: Final = (
    Page("/groups/{id:segment}", show_group),
    Page("/groups/{id:segment}/timeline", show_timeline),
    Page("/groups/{id:segment}/events", send_events),
)
