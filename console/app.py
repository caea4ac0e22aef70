"""The console as an ASGI application: each request is checked, served and given its headers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from console.headers import PAGE_HEADERS
from console.pages.groups_page import GROUPS_PAGES
from console.refusals import Refusal, Refused, compute_refusal, describe
from console.signin.browsers import Browser
from console.signin.forms import (
    CSRF_FIELD,
    FORM_BYTES_MAX,
    QUERY_BYTES_MAX,
    check_origin,
    check_token,
    parse_form,
)
from console.signin.hosts import is_own_name
from console.site import Head, Page, Site, Visit
from console.urls import decode_segment, encode_segment
from coordinator.service.calls.local_calls import CallRefused, Visitor
from security.identity import NOBODY

_BODY_TIMEOUT_S: Final = 10.0
_YEAR_S: Final = 31_536_000

PAGES: Final[tuple[Page, ...]] = (*GROUPS_PAGES,)

_MESSAGES: Final = {
    404: "There is no such page.",
    405: "This page cannot be asked for in this way.",
}

_Scope = MutableMapping[str, Any]
_App = Callable[[_Scope, Any, Any], Awaitable[None]]


class _Segment(Convertor[str]):
    """One segment of a path that is still in percent-encoding."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return decode_segment(value)

    def to_string(self, value: str) -> str:
        return encode_segment(value)


register_url_convertor("segment", _Segment())


def make_app(site: Site) -> _App:
    """The pages of a site."""
    routes = [Route("/static/{name:segment}", _Static(site), methods=["GET"])]
    routes += [
        Route(page.path, _make_endpoint(site, page), methods=[page.method]) for page in PAGES
    ]

    async def show_error(request: Request, error: Exception) -> Response:
        # What is none of these is logged afterwards, as an error of the application.
        status = error.status_code if isinstance(error, HTTPException) else 500
        refusal = describe(status, _MESSAGES.get(status, "The page could not be made."))
        return await _answer(site, request, lambda visit: _show_refusal(visit, refusal))

    errors: Mapping[Any, Any] = {HTTPException: show_error, Exception: show_error}
    pages = Starlette(routes=routes, exception_handlers=errors)

    async def serve(scope: _Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            # Paths are matched in percent-encoding, so that an id may contain a slash.
            scope = dict(scope) | {"path": scope["raw_path"].decode("ascii", "replace")}
        await pages(scope, receive, send)

    return serve


class _Static:
    """Serves the static files, which anybody may see."""

    def __init__(self, site: Site) -> None:
        self._files = site.renderer.static

    async def __call__(self, scope: _Scope, receive: Any, send: Any) -> None:
        request = Request(scope)
        file = self._files.get(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        is_current = request.query_params.get("v") == file.tag
        kept = f"public, max-age={_YEAR_S}, immutable" if is_current else "no-cache"
        headers = {**PAGE_HEADERS, "cache-control": kept, "content-type": file.content_type}
        await Response(file.content, headers=headers)(scope, receive, send)


def _make_endpoint(site: Site, page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await _answer(site, request, page.handle)

    return endpoint


async def _answer(
    site: Site, request: Request, handle: Callable[[Visit], Awaitable[Response]]
) -> Response:
    """Check a request, serve it, and add what every response has."""
    browser = site.browsers.find(request.cookies.get(site.browsers.cookie))
    visit = Visit(site, request, browser, Visitor(NOBODY, _compute_peer(request)))
    try:
        _check_request(site, request)
        if request.method == "POST":
            visit = await _read_form(visit)
        response = await handle(visit)
    except (CallRefused, Refused) as error:
        response = await _show_refusal(visit, compute_refusal(error))
    except ClientDisconnect:
        response = Response(status_code=400)
    for name, value in PAGE_HEADERS.items():
        response.headers.setdefault(name, value)
    if browser.is_new:
        _set_cookie(site, response, browser)
    return response


def _check_request(site: Site, request: Request) -> None:
    """Raise ``Refused`` for a request that is no browser's of ours."""
    if not is_own_name(request.headers.get("host", ""), site.hosts):
        raise Refused(421, "The browser asked for a name that is not known to be this server's.")
    if len(request.scope["query_string"]) > QUERY_BYTES_MAX:
        raise Refused(414, "The address is too long.")


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
    return Visit(visit.site, visit.request, visit.browser, visit.visitor, form)


async def _show_refusal(visit: Visit, refusal: Refusal) -> Response:
    head = Head(refusal.title, "")
    return await visit.render("error.html", head, status=refusal.status, refusal=refusal)


def _compute_peer(request: Request) -> str:
    host, port = request.client or ("127.0.0.1", 0)
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"


def _set_cookie(site: Site, response: Response, browser: Browser) -> None:
    response.set_cookie(
        site.browsers.cookie,
        browser.secret,
        secure=site.browsers.is_secure,
        httponly=True,
        samesite="strict",
    )
