"""The page of one group, now and at any past position, and the events that keep it up to date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from console.live.fragments import Fragments, Render
from console.live.group_questions import REBALANCES, ask_past, ask_present, ask_rebalances
from console.live.group_sections import Answers, RowMaker
from console.live.live_group import LiveGroup
from console.live.live_groups import make_events
from console.pages.group_parts import (
    get_group_id,
    join_sections,
    load_render,
    make_crumbs,
    parse_at,
    parse_page,
    render_as_of,
)
from console.refusals import Refused
from console.site import Head, Page, Visit
from console.urls import make_url
from console.views.timeline_view import compute_timeline, was_there_before
from coordinator.service.calls.local_calls import CallRefused
from coordinator.service.wire.answer_slices import run_steps
from muster.v1 import history_pb2, types_pb2
from wording.commands import render_command
from wording.numbers import parse_digits
from wording.positions import render_position

_SCRIPTS: Final = ("group.js",)
_STYLES: Final = ("group.css",)


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
        answers = await ask_present(visit.ask, group_id, page)
        return await _render(visit, group_id, await _make_fragments(answers, render), answers)
    live = _find_live(visit, group_id, render)
    answers = await live.refresh(visit.visitor)
    live_url = make_url("groups", group_id, "events", since=live.fragments.tag)
    return await _render(visit, group_id, live.fragments, answers, live_url=live_url)


def _find_live(visit: Visit, group_id: str, render: Render) -> LiveGroup:
    site, visitor = visit.site, visit.visitor
    rights = site.viewers.compute_key(visitor)
    return site.live.find(site.calls, group_id, visitor, rights, render)


async def _make_fragments(answers: Answers, render: Render) -> Fragments:
    fragments = Fragments(render)
    await run_steps(fragments.update(await run_steps(RowMaker().make(answers))))
    return fragments


async def _show_past(visit: Visit, group_id: str, as_of: types_pb2.AsOf, page: int) -> Response:
    render = await load_render(visit, group_id)
    answers, position = await ask_past(visit.ask, group_id, as_of, page)
    offset = position.offset if position.HasField("offset") else -1
    before, after = await _find_neighbours(visit, group_id, offset)
    fragments = await _make_fragments(answers, render)
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
    elif answers.rebalances and was_there_before(answers.rebalances[0]):
        previous_url = make_url("groups", group_id, at=answers.rebalances[0].began_ms - 1)
    has_older = len(answers.rebalances) >= REBALANCES
    older_url = ""
    if has_older:
        until_ms = answers.rebalances[-1].began_ms
        older_url = make_url("groups", group_id, "timeline", until=until_ms)
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
    """Older rebalances, a page at a time."""
    group_id = get_group_id(visit)
    until = visit.request.query_params.get("until", "")
    until_ms = parse_digits(until or "0", 18)
    if until_ms is None:
        raise Refused(400, "until is a time in ms since 1970")
    token = visit.request.query_params.get("page", "")
    told = await ask_rebalances(visit.ask, group_id, until_ms, token)
    render = await load_render(visit, group_id)
    rows = Markup("").join(
        Markup(render("timeline", row, "")) for row in compute_timeline(told.rebalances)
    )
    older_url = ""
    if told.next_page_token:
        older_url = make_url("groups", group_id, "timeline", until=until, page=told.next_page_token)
    command = render_command("timeline", group_id, "--since", "365d")
    if until:
        command += f" --until {until}"
    head = Head(
        f"{group_id}: rebalances",
        "groups",
        make_crumbs(group_id, "Rebalances"),
        command,
        styles=_STYLES,
    )
    return await visit.render(
        "timeline.html", head, group_id=group_id, rows=rows, older_url=older_url
    )


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
