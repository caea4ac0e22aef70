"""Signing in and out."""

from __future__ import annotations

from typing import Final

import grpc
from starlette.responses import Response

from console.refusals import compute_refusal
from console.site import Head, Page, Visit
from console.urls import is_own_path
from coordinator.service.calls.local_calls import CallRefused

_START: Final = "/groups"
_HEAD: Final = Head("Sign in", "")
_WRONG: Final = "This is not right: check the user and the password, or get another token."


async def show_sign_in(visit: Visit) -> Response:
    """The form."""
    to = _choose_goal(visit.request.query_params.get("to", ""))
    if visit.site.doorkeeper.credentials is None:
        return visit.redirect(to)
    return await _render(visit, to, "")


async def sign_in(visit: Visit) -> Response:
    """Check what the form has, and begin a session under a new cookie."""
    to = _choose_goal(visit.find_field("to"))
    doorkeeper = visit.site.doorkeeper
    if doorkeeper.credentials is None:
        return visit.redirect(to)
    signed_in = visit.site.browsers.make()
    try:
        await doorkeeper.sign_in(
            signed_in,
            visit.visitor.peer,
            user=visit.find_field("user"),
            password=visit.find_field("password"),
            token=visit.find_field("token").strip(),
        )
    except CallRefused as refused:
        if refused.status is grpc.StatusCode.UNAUTHENTICATED:
            return await _render(visit, to, _WRONG, 401)
        refusal = compute_refusal(refused)
        return await _render(visit, to, refusal.message, refusal.status)
    # Whatever the browser was before: nobody has seen the new cookie.
    doorkeeper.sessions.close(visit.browser.secret)
    response = visit.redirect(to)
    visit.site.browsers.set_cookie(response, signed_in)
    return response


async def sign_out(visit: Visit) -> Response:
    """End the session."""
    visit.site.doorkeeper.sessions.close(visit.browser.secret)
    response = visit.redirect("/signin")
    visit.site.browsers.set_cookie(response, visit.site.browsers.make())
    return response


async def _render(visit: Visit, to: str, trouble: str, status: int = 200) -> Response:
    return await visit.render(
        "signin.html",
        _HEAD,
        status=status,
        to=to,
        trouble=trouble,
        user=visit.find_field("user"),
        credentials=visit.site.doorkeeper.credentials,
    )


def _choose_goal(to: str) -> str:
    return to if is_own_path(to) else _START


SIGN_IN_PAGES: Final = (
    Page("/signin", show_sign_in, is_open=True),
    Page("/signin", sign_in, "POST", is_open=True),
    Page("/signout", sign_out, "POST", is_open=True),
)
