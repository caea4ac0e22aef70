"""What pages have: the services to ask, templates, and the visit that is served."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from console.facts import FindFacts
from console.listing.viewers import Viewers
from console.live.live_groups import LiveGroups
from console.rendering import Renderer
from console.signin.browsers import Browser, Browsers
from console.signin.doorkeeper import Doorkeeper
from console.streams import EventStreams
from coordinator.service.calls.local_calls import LocalCalls, Visitor

SEE_OTHER: Final = 303


@dataclass(frozen=True, slots=True)
class Site:
    """The console of one server. ``hosts`` are its names, in lower case.

    ``viewers`` remembers what lists cost much to show.
    """

    calls: LocalCalls
    renderer: Renderer
    browsers: Browsers
    doorkeeper: Doorkeeper
    viewers: Viewers
    find_facts: FindFacts
    versions: Mapping[str, str]
    hosts: frozenset[str] = frozenset()
    streams: EventStreams = field(default_factory=EventStreams)
    live: LiveGroups = field(default_factory=LiveGroups)


@dataclass(frozen=True, slots=True)
class Crumb:
    """A step of the way to a page. The last one, the page itself, has no ``url``."""

    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """What is around each page. ``section`` is the entry of the navigation that it belongs to.

    ``command`` is the ``muster`` command that shows or does the same. ``scripts`` and ``styles``
    are names of static files, beside those of every page.
    """

    title: str
    section: str
    crumbs: Sequence[Crumb] = ()
    command: str = ""
    scripts: Sequence[str] = ()
    styles: Sequence[str] = ()


class Entry(NamedTuple):
    """An entry of the navigation, on every page."""

    section: str
    text: str
    url: str


NAVIGATION: Final = (
    Entry("groups", "Groups", "/groups"),
    Entry("migration", "Migration", "/migration"),
    Entry("topics", "Topics", "/topics"),
    Entry("log", "Log", "/log"),
    Entry("cluster", "Cluster", "/cluster"),
    Entry("health", "Health", "/health"),
)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request, of whom it is, and ``form``: what a form brought, in order.

    ``is_known``: the visitor was asked who he is, so that ``visitor`` is he.
    """

    site: Site
    request: Request
    browser: Browser
    visitor: Visitor
    form: Sequence[tuple[str, str]] = ()
    is_known: bool = False

    async def ask(self, service: str, method: str, request: Message) -> Any:
        """What ``LocalCalls.call`` returns for the visitor. Raises ``CallRefused``."""
        return await self.site.calls.call(service, method, request, self.visitor)

    def find_field(self, name: str, default: str = "") -> str:
        """The first value of a field of the form."""
        return next((value for key, value in self.form if key == name), default)

    async def render(
        self, template: str, head: Head, *, status: int = 200, **values: object
    ) -> Response:
        """The page of a template."""
        shown = {
            "head": head,
            "navigation": NAVIGATION,
            "principal": self.visitor.identity.principal if self.is_known else "",
            "is_signed_in": self.is_known and self.site.doorkeeper.credentials is not None,
            "csrf": self.site.browsers.compute_csrf_token(self.browser),
            "versions": self.site.versions,
            "theme": self._find_theme(),
            "permalink": self.compute_permalink(),
            **values,
        }
        return HTMLResponse(await self.site.renderer.render(template, shown), status)

    def follow(self, events: AsyncGenerator[bytes, None]) -> Response:
        """Send events (``encode_event``) as they come, until the client goes or is signed out.

        The generator is closed then. Raises ``Refused`` if too many pages follow the server.
        """

        def is_current() -> bool:
            return self.site.doorkeeper.is_current(self.browser)

        return self.site.streams.respond(self.visitor.peer, is_current, events)

    def redirect(self, url: str) -> Response:
        """Send the browser to another page, which it gets."""
        return RedirectResponse(url, SEE_OTHER)

    def _find_theme(self) -> str:
        theme = self.request.cookies.get("muster-theme", "")
        return theme if theme in ("light", "dark") else ""

    def compute_permalink(self) -> str:
        """The address of the page here, with its query."""
        # Two slashes would begin the name of another server.
        path, query = "/" + self.request.url.path.lstrip("/"), self.request.url.query
        return f"{path}?{query}" if query else path


Handle: TypeAlias = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: in ``path``, ``{id:segment}`` is an id in one segment, which ``handle`` finds decoded
    in ``visit.request.path_params``. With POST the form has been checked to be ours. An open page
    is for whoever has not signed in, too.
    """

    path: str
    handle: Handle
    method: str = "GET"
    is_open: bool = False
