"""What can be done to a group: forms, previews, and what came of it."""

from __future__ import annotations

import uuid
from typing import Any, Final

from google.protobuf.message import Message
from starlette.responses import Response

from console.pages.actions.action import REQUEST_ID_FIELD, TOKEN_FIELD, Action
from console.pages.actions.config_actions import CONFIG_ACTIONS, describe_configs
from console.pages.actions.deletion_actions import DELETION_ACTIONS, fetch_offsets
from console.pages.actions.freeze_actions import FREEZE_ACTIONS
from console.pages.actions.member_actions import MEMBER_ACTIONS
from console.pages.actions.reset_actions import RESET_ACTIONS
from console.pages.actions.rollback_actions import ROLLBACK_ACTIONS
from console.refusals import Refused
from console.site import Crumb, Head, Page, Visit
from console.urls import make_url
from console.views.actions.actions_view import GroupFacts, compute_actions_view
from coordinator.service.calls.local_calls import CallRefused
from muster.v1 import admin_pb2, group_pb2, reset_pb2
from wording.commands import render_command

ACTIONS: Final[dict[str, Action]] = {
    action.name: action
    for action in (
        *FREEZE_ACTIONS,
        *MEMBER_ACTIONS,
        *RESET_ACTIONS,
        *CONFIG_ACTIONS,
        *DELETION_ACTIONS,
        *ROLLBACK_ACTIONS,
    )
}
STYLES: Final = ("actions.css",)


async def show_actions(visit: Visit) -> Response:
    """The forms of all actions, each with what is in its way."""
    group_id = _get_group(visit)
    described = admin_pb2.DescribeGroupRequest(
        group_id=group_id, include_authorized_operations=True
    )
    changes = reset_pb2.ListOffsetChangesRequest(group_id=group_id)
    facts = GroupFacts(
        await _ask_if_allowed(visit, "AdminService", "DescribeGroup", described),
        await _fetch_if_allowed(visit, group_id),
        await _ask_if_allowed(visit, "ResetService", "ListOffsetChanges", changes),
        await _describe_configs_if_allowed(visit, group_id),
    )
    head = _make_head(visit, "Actions", render_command("group", "describe", group_id))
    return await visit.render("actions.html", head, view=compute_actions_view(group_id, facts))


async def go_to_actions(visit: Visit) -> Response:
    """The address of a preview, asked for again."""
    return visit.redirect(make_url("groups", _get_group(visit), "actions"))


async def preview_action(visit: Visit) -> Response:
    """What an action would change. Nothing changes."""
    group_id, action = _get_group(visit), _get_action(visit)
    preview = await action.preview(visit, group_id)
    hidden = [
        *preview.fields,
        (TOKEN_FIELD, preview.token),
        (REQUEST_ID_FIELD, str(uuid.uuid4())),
    ]
    head = _make_head(visit, preview.title, preview.command)
    return await visit.render(
        "preview.html", head, view=preview, action=action.name, group_id=group_id, hidden=hidden
    )


async def confirm_action(visit: Visit) -> Response:
    """Do what was previewed."""
    group_id, action = _get_group(visit), _get_action(visit)
    outcome = await action.carry_out(visit, group_id)
    head = _make_head(visit, outcome.title, outcome.command)
    return await visit.render("outcome.html", head, view=outcome, group_id=group_id)


def _get_group(visit: Visit) -> str:
    group_id: str = visit.request.path_params["group"]
    return group_id


def _get_action(visit: Visit) -> Action:
    action = ACTIONS.get(visit.request.path_params["action"])
    if action is None:
        raise Refused(404, "There is no such action.")
    return action


def _make_head(visit: Visit, title: str, command: str) -> Head:
    group_id = _get_group(visit)
    crumbs = (
        Crumb("Groups", make_url("groups")),
        Crumb(group_id, make_url("groups", group_id)),
        Crumb("Actions", "" if title == "Actions" else make_url("groups", group_id, "actions")),
        *(() if title == "Actions" else (Crumb(title),)),
    )
    shown = f"Actions on {group_id}" if title == "Actions" else title
    return Head(shown, "groups", crumbs, command, styles=STYLES)


async def _ask_if_allowed(visit: Visit, service: str, method: str, request: Message) -> Any:
    """``None`` for what there is not, and for what the visitor may not see."""
    try:
        return await visit.ask(service, method, request)
    except CallRefused:
        return None


async def _fetch_if_allowed(visit: Visit, group_id: str) -> group_pb2.FetchOffsetsResponse | None:
    try:
        return await fetch_offsets(visit, group_id)
    except (CallRefused, Refused):
        return None


async def _describe_configs_if_allowed(visit: Visit, group_id: str) -> Any:
    try:
        return await describe_configs(visit, group_id)
    except CallRefused:
        return None


_PATH: Final = "/groups/{group:segment}/actions"

ACTIONS_PAGES: Final = (
    Page(_PATH, show_actions),
    Page(_PATH + "/{action:segment}", go_to_actions),
    Page(_PATH + "/{action:segment}", preview_action, "POST"),
    Page(_PATH + "/{action:segment}/confirm", go_to_actions),
    Page(_PATH + "/{action:segment}/confirm", confirm_action, "POST"),
)
