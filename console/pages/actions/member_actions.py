"""The removal of members."""

from __future__ import annotations

from typing import Final

from console.pages.actions.action import (
    TOKEN_FIELD,
    Action,
    list_fields,
    list_values,
    read_request_id,
)
from console.refusals import Refused
from console.site import Visit
from console.views.actions.member_view import compute_removal_outcome, compute_removal_preview
from console.views.actions.preview import Outcome, Preview
from muster.v1 import admin_pb2


def _make_request(visit: Visit, group_id: str) -> admin_pb2.RemoveMembersRequest:
    request = admin_pb2.RemoveMembersRequest(
        group_id=group_id, reason=visit.find_field("reason").strip()
    )
    for member_id in list_values(visit, "member"):
        request.members.add(member_id=member_id)
    for instance_id in list_values(visit, "instance"):
        request.members.add(instance_id=instance_id)
    if not request.members:
        raise Refused(400, "Say whom: choose a member.")
    return request


async def _preview(visit: Visit, group_id: str) -> Preview:
    request = _make_request(visit, group_id)
    request.validate_only = True
    shown = await visit.ask("AdminService", "RemoveMembers", request)
    fields = list_fields(visit, "member", "instance", "reason")
    return compute_removal_preview(request, shown, fields)


async def _remove(visit: Visit, group_id: str) -> Outcome:
    request = _make_request(visit, group_id)
    request.preview = visit.find_field(TOKEN_FIELD)
    if not request.preview:
        raise Refused(400, "The form has no preview: begin with that.")
    request.request_id = read_request_id(visit)
    done = await visit.ask("AdminService", "RemoveMembers", request)
    return compute_removal_outcome(request, done)


MEMBER_ACTIONS: Final = (Action("remove-member", _preview, _remove),)
