"""The list of groups."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from console.site import Head, Page, Visit
from console.views.groups_view import compute_groups_view
from muster.v1 import admin_pb2


async def go_to_groups(visit: Visit) -> Response:
    """The start page."""
    return visit.redirect("/groups")


async def show_groups(visit: Visit) -> Response:
    """A page of the groups."""
    answer = await visit.ask("AdminService", "ListGroups", admin_pb2.ListGroupsRequest())
    head = Head("Groups", "groups", command="muster group list")
    return await visit.render("groups.html", head, view=compute_groups_view(answer))


GROUPS_PAGES: Final = (Page("/", go_to_groups), Page("/groups", show_groups))
