"""The console in Chromium, driven by Playwright: pages, and all that went wrong on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.browser import find_browser

DEADLINE_MS = 30_000
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@dataclass
class Watched:
    """A page. ``errors`` has exceptions of scripts, and what a policy forbade; ``foreign`` the
    addresses of other servers that were asked for."""

    page: Page
    origin: str
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def open(self, path: str) -> int:
        """Load a page of the console; its status."""
        answer = self.page.goto(self.origin + path)
        assert answer is not None
        return answer.status

    def read(self, selector: str) -> str:
        """The text of an element, when it is there."""
        return " ".join(self.page.locator(selector).first.inner_text().split())

    def note_message(self, message: ConsoleMessage) -> None:
        # Chromium itself says so of each page with a status from 400 on.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def note_request(self, request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme != "data" and f"{url.scheme}://{url.netloc}" != self.origin:
            self.foreign.append(request.url)


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Chromium without a window; nothing is downloaded. Raises ``MissingPrerequisite``."""
    path = find_browser()
    expect.set_options(timeout=DEADLINE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(
    browser: Browser,
    origin: str,
    *,
    with_scripts: bool = True,
    is_dark: bool = False,
    width: int = 1280,
    height: int = 900,
) -> Iterator[Watched]:
    """A page in a profile of its own."""
    context = browser.new_context(
        java_script_enabled=with_scripts,
        color_scheme="dark" if is_dark else "light",
        viewport={"width": width, "height": height},
    )
    context.set_default_timeout(DEADLINE_MS)
    try:
        watched = Watched(context.new_page(), origin)
        watched.page.on("console", watched.note_message)
        watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
        watched.page.on("request", watched.note_request)
        yield watched
    finally:
        context.close()
