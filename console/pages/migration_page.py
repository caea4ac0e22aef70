"""Which groups can go to the consumer protocol, how far they are, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from console.pages.group_parts import get_group_id, make_crumbs
from console.refusals import Refused
from console.site import Crumb, Head, Page, Visit
from console.urls import make_url
from console.views.migration_view import (
    CandidateRow,
    compute_candidate_row,
    compute_migration_view,
)
from console.views.whatif_view import WhatIfView, compute_what_if_view
from coordinator.service.calls.local_calls import CallRefused
from muster.v1 import admin_pb2, what_if_pb2
from wording.commands import render_command

PAGE_SIZE: Final = 50
MEMBERS_MAX: Final = 1_000
"""A list does not plan for larger groups: their own page does."""

STYLES: Final = ("actions.css",)
_TYPES: Final = {
    "": (admin_pb2.GROUP_TYPE_CLASSIC, admin_pb2.GROUP_TYPE_CONSUMER),
    "classic": (admin_pb2.GROUP_TYPE_CLASSIC,),
    "consumer": (admin_pb2.GROUP_TYPE_CONSUMER,),
}
"""By what the address asks for."""


async def show_candidates(visit: Visit) -> Response:
    """The groups, a page at a time, with how far each is, and whether it can go on or back."""
    only = visit.request.query_params.get("type", "")
    if only not in _TYPES:
        raise Refused(400, f"type is one of {', '.join(filter(None, _TYPES))}")
    request = admin_pb2.ListGroupsRequest(
        types=_TYPES[only],
        page_size=PAGE_SIZE,
        page_token=visit.request.query_params.get("after", ""),
    )
    answer = await visit.ask("AdminService", "ListGroups", request)
    rows: Sequence[CandidateRow] = [await _make_row(visit, group) for group in answer.groups]
    head = Head(
        "Migration",
        "migration",
        (Crumb("Migration"),),
        render_command("group", "list", *(("--type", only) if only else ())),
        styles=STYLES,
    )
    next_url = ""
    if answer.next_page_token:
        next_url = make_url("migration", type=only, after=answer.next_page_token)
    kinds = [(kind or "all", make_url("migration", type=kind), kind == only) for kind in _TYPES]
    return await visit.render("candidates.html", head, rows=rows, next_url=next_url, kinds=kinds)


async def _make_row(visit: Visit, group: admin_pb2.GroupSummary) -> CandidateRow:
    if group.members > MEMBERS_MAX:
        return compute_candidate_row(group, None)
    request = admin_pb2.PlanMigrationRequest(group_id=group.group_id)
    try:
        plan = await visit.ask("AdminService", "PlanMigration", request)
    except CallRefused:
        plan = None
    return compute_candidate_row(group, plan)


async def show_migration(visit: Visit) -> Response:
    """The plan of a classic group, or the progress and the way back of a consumer group."""
    group_id = get_group_id(visit)
    plan = await visit.ask(
        "AdminService", "PlanMigration", admin_pb2.PlanMigrationRequest(group_id=group_id)
    )
    described = await visit.ask(
        "AdminService",
        "DescribeGroup",
        admin_pb2.DescribeGroupRequest(group_id=group_id, include_authorized_operations=True),
    )
    view = compute_migration_view(plan, described.group)
    foreseen: WhatIfView | None = None
    why_not = ""
    is_ahead = view.progress is None
    if is_ahead and view.plan.clients and view.plan.verdict != "BLOCKED":
        foreseen, why_not = await _foresee(visit, group_id)
    command = "plan" if is_ahead else "status"
    head = Head(
        f"Migration of {group_id}",
        "groups",
        make_crumbs(group_id, "Migration"),
        render_command("migrate", command, group_id),
        scripts=("migration.js",),
        styles=STYLES,
    )
    return await visit.render(
        "migration.html",
        head,
        view=view,
        foreseen=foreseen,
        why_not=why_not,
        may_change="ALTER_CONFIGS" in described.authorized_operations,
    )


async def _foresee(visit: Visit, group_id: str) -> tuple[WhatIfView | None, str]:
    """What the conversion would move, or why that is not known."""
    request = what_if_pb2.WhatIfRequest(group_id=group_id, protocol="consumer")
    try:
        found = await visit.ask("WhatIfService", "WhatIf", request)
    except CallRefused as error:
        return None, error.message
    return compute_what_if_view(group_id, found, request.protocol), ""


MIGRATION_PAGES: Final = (
    Page("/migration", show_candidates),
    Page("/groups/{id:segment}/migration", show_migration),
)
