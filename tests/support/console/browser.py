"""A browser without a screen: pages of the console, asked for in process."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from types import TracebackType
from typing import Any, Self

import httpx

from console.app import make_app
from console.facts import ServerFacts
from console.listing.viewers import Viewers
from console.rendering import Renderer
from console.signin.browsers import Browsers
from console.signin.doorkeeper import Doorkeeper
from console.signin.sessions import Sessions
from console.site import Site
from coordinator.service.calls.local_calls import LocalCalls

ORIGIN = "http://127.0.0.1:8080"
VERSIONS = {"muster": "1.2.3"}


@dataclass
class Clock:
    """Time that tests set, in ms."""

    now_ms: int = 0


IDLE_MS = 60_000
LONGEST_MS = 600_000


def make_sessions(clock: Clock) -> Sessions:
    """Sessions by a clock that tests set."""
    return Sessions(
        idle_ms=IDLE_MS,
        longest_ms=LONGEST_MS,
        monotonic_ms=lambda: clock.now_ms,
        wall_ms=lambda: int(time.time() * 1_000),
    )


FACTS = ServerFacts("cluster<b>", 7, 4_711, 1_000, True)


async def find_facts() -> ServerFacts:
    return FACTS


def make_site(calls: LocalCalls, doorkeeper: Doorkeeper | None = None) -> Site:
    """The console of a server of tests, where by default everybody is anonymous."""
    keeper = doorkeeper or Doorkeeper(make_sessions(Clock()))
    browsers = Browsers("test", is_secure=False)
    viewers = Viewers(calls)
    return Site(calls, Renderer(), browsers, keeper, viewers, find_facts, VERSIONS)


class Browser:
    """Keeps cookies, sends forms with what their page had for them, follows no redirection."""

    def __init__(
        self, site: Site, *, peer: str = "127.0.0.1", certificate: str | None = None
    ) -> None:
        """``certificate`` is what the handshake has shown."""
        app = make_app(site)

        async def serve(scope: Any, receive: Any, send: Any) -> None:
            tls = {} if certificate is None else {"client_cert_chain": [certificate]}
            await app({**scope, "extensions": {"tls": tls}}, receive, send)

        transport = httpx.ASGITransport(serve, client=(peer, 50_000))
        self.client = httpx.AsyncClient(transport=transport, base_url=ORIGIN)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return await self.client.get(path, headers=headers)

    async def post(
        self,
        path: str,
        fields: Mapping[str, str] | None = None,
        *,
        shown_on: str = "/groups",
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a form that a page has shown."""
        csrf = find_csrf((await self.get(shown_on)).text)
        return await self.client.post(
            path,
            data={"csrf": csrf, **(fields or {})},
            headers={"origin": ORIGIN, **(headers or {})},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.client.aclose()


def find_csrf(text: str) -> str:
    """What a page has for its forms; empty without one."""
    found = re.search(r'name="csrf" value="([^"]*)"', text)
    return unescape(found[1]) if found else ""


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def read_text(page: str) -> str:
    """What a page says to people, with single spaces."""
    parser = _Text()
    parser.feed(page)
    return " ".join(" ".join(parser.parts).split())


def read_tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """The elements of a page with their attributes, in order."""
    parser = _Text()
    parser.feed(page)
    return parser.tags
