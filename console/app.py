"""The console as an ASGI application: its pages, and its static files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.headers import PAGE_HEADERS
from console.pages.actions_page import ACTIONS_PAGES
from console.pages.cluster_page import CLUSTER_PAGES
from console.pages.group_page import GROUP_PAGES
from console.pages.groups_page import GROUPS_PAGES
from console.pages.lanes_page import LANES_PAGES
from console.pages.log_page import LOG_PAGES
from console.pages.migration_page import MIGRATION_PAGES
from console.pages.signin_page import SIGN_IN_PAGES
from console.pages.topics_page import TOPICS_PAGES
from console.pages.whatif_page import WHAT_IF_PAGES
from console.refusals import describe
from console.serving import serve_page, serve_refusal
from console.site import Page, Site
from console.urls import decode_segment, encode_segment

_YEAR_S: Final = 31_536_000
_MESSAGES: Final = {
    404: "There is no such page.",
    405: "This page cannot be asked for in this way.",
}

PAGES: Final[tuple[Page, ...]] = (
    *SIGN_IN_PAGES,
    *GROUPS_PAGES,
    *CLUSTER_PAGES,
    *GROUP_PAGES,
    *LANES_PAGES,
    *ACTIONS_PAGES,
    *WHAT_IF_PAGES,
    *MIGRATION_PAGES,
    *TOPICS_PAGES,
    *LOG_PAGES,
)

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
    routes = [Route("/static/{name:segment}", _make_static(site), methods=["GET"])]
    routes += [
        Route(page.path, _make_endpoint(site, page), methods=[page.method]) for page in PAGES
    ]

    async def show_error(request: Request, error: Exception) -> Response:
        # What is no HTTPException is logged afterwards, as an error of the application.
        status = error.status_code if isinstance(error, HTTPException) else 500
        message = _MESSAGES.get(status, "The page could not be made.")
        return await serve_refusal(site, request, describe(status, message))

    errors: Mapping[Any, Any] = {HTTPException: show_error, Exception: show_error}
    pages = Starlette(routes=routes, exception_handlers=errors)

    async def serve(scope: _Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            # Paths are matched in percent-encoding, so that an id may contain a slash.
            path = scope["raw_path"].decode("ascii", "replace").partition("?")[0]
            scope = {**scope, "path": path, "root_path": ""}
        await pages(scope, receive, send)

    return serve


def _make_static(site: Site) -> Callable[[Request], Awaitable[Response]]:
    """Serves the static files, which anybody may see."""

    async def endpoint(request: Request) -> Response:
        file = site.renderer.static.get(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        is_current = request.query_params.get("v") == file.tag
        kept = f"public, max-age={_YEAR_S}, immutable" if is_current else "no-cache"
        headers = {**PAGE_HEADERS, "cache-control": kept, "content-type": file.content_type}
        return Response(file.content, headers=headers)

    return endpoint


def _make_endpoint(site: Site, page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await serve_page(site, request, page)

    return endpoint
