"""How one request is served: checked, by whom it is, answered, and given what all answers have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import grpc
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from console.headers import PAGE_HEADERS
from console.refusals import Refusal, Refused, compute_refusal
from console.signin.arrival import Arrival, find_arrival
from console.signin.doorkeeper import NotSignedIn
from console.signin.forms import (
    CSRF_FIELD,
    FORM_BYTES_MAX,
    QUERY_BYTES_MAX,
    check_origin,
    check_token,
    parse_form,
)
from console.signin.hosts import is_own_name
from console.site import SEE_OTHER, Head, Page, Site, Visit
from console.urls import make_url
from coordinator.service.calls.local_calls import CallRefused, Visitor
from security.identity import NOBODY
from wording.errors import InputError

_BODY_TIMEOUT_S: Final = 10.0

Answer = Callable[[Visit], Awaitable[Response]]


async def serve_page(site: Site, request: Request, page: Page) -> Response:
    """Serve a page to who may see it."""
    takes_form = page.method == "POST"
    return await _serve(site, request, page.handle, is_open=page.is_open, takes_form=takes_form)


async def serve_refusal(site: Site, request: Request, refusal: Refusal) -> Response:
    """Serve the page of an error."""

    async def handle(visit: Visit) -> Response:
        return await show_refusal(visit, refusal)

    return await _serve(site, request, handle, is_open=True, takes_form=False)


async def show_refusal(visit: Visit, refusal: Refusal) -> Response:
    """The page of an error."""
    head = Head(refusal.title, "")
    return await visit.render("error.html", head, status=refusal.status, refusal=refusal)


async def _serve(
    site: Site, request: Request, handle: Answer, *, is_open: bool, takes_form: bool
) -> Response:
    browser = site.browsers.find(request.cookies.get(site.browsers.cookie))
    visit = Visit(site, request, browser, Visitor(NOBODY, _compute_peer(request)))
    sets_cookie = False
    try:
        _check_request(site, request)
        if find_arrival(request.method, request.headers) is Arrival.LINK:
            # Comes back from a page of ours, and then with the cookie.
            response: Response = HTMLResponse(await site.renderer.render("bounce.html", {}))
        else:
            sets_cookie = browser.is_new
            visit = await _find_visitor(visit, is_open=is_open)
            if takes_form:
                visit = await _read_form(visit)
            response = await handle(visit)
    except NotSignedIn:
        response = await _ask_to_sign_in(visit)
    except (CallRefused, Refused, InputError) as error:
        response = await show_refusal(visit, compute_refusal(error))
    except ClientDisconnect:
        response = Response(status_code=400)
    for name, value in PAGE_HEADERS.items():
        response.headers.setdefault(name, value)
    if sets_cookie and "set-cookie" not in response.headers:
        site.browsers.set_cookie(response, browser)
    return response


def _check_request(site: Site, request: Request) -> None:
    """Raise ``Refused`` for a request that no browser of ours makes."""
    if not is_own_name(request.headers.get("host", ""), site.hosts):
        raise Refused(421, "The browser asked for a name that is not known to be this server's.")
    if len(request.scope["query_string"]) > QUERY_BYTES_MAX:
        raise Refused(414, "The address is too long.")
    if find_arrival(request.method, request.headers) is Arrival.FOREIGN:
        raise Refused(403, "Another site's page has asked for this.")


async def _find_visitor(visit: Visit, *, is_open: bool) -> Visit:
    """The visit of whom it is. Raises ``NotSignedIn``, ``CallRefused``; not for an open page."""
    chain = visit.request.scope.get("extensions", {}).get("tls", {}).get("client_cert_chain", ())
    try:
        identity = await visit.site.doorkeeper.find_identity(
            visit.browser, visit.visitor.peer, chain[0] if chain else None
        )
    except (NotSignedIn, CallRefused):
        if is_open:
            return visit
        raise
    return replace(visit, visitor=Visitor(identity, visit.visitor.peer), is_known=True)


async def _ask_to_sign_in(visit: Visit) -> Response:
    request = visit.request
    if request.method in ("GET", "HEAD"):
        goal = visit.compute_permalink()
        return RedirectResponse(make_url("signin", to=goal), SEE_OTHER)
    refused = CallRefused(grpc.StatusCode.UNAUTHENTICATED, "Your session has ended.")
    return await show_refusal(visit, compute_refusal(refused))


async def _read_form(visit: Visit) -> Visit:
    """The visit with its form. Raises ``Refused`` unless it is one of ours."""
    check_origin(visit.request.headers)
    content = b""
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            async for part in visit.request.stream():
                content += part
                if len(content) > FORM_BYTES_MAX:
                    raise Refused(413, "The form is too large.")
    except TimeoutError:
        raise Refused(408, "The form did not arrive in time.") from None
    form = parse_form(content)
    sent = next((value for key, value in form if key == CSRF_FIELD), "")
    check_token(sent, visit.site.browsers.compute_csrf_token(visit.browser))
    return replace(visit, form=form)


def _compute_peer(request: Request) -> str:
    host, port = request.client or ("127.0.0.1", 0)
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
