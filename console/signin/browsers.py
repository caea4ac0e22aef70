"""One browser, told by a cookie, and what makes forms its own."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from starlette.responses import Response

_COOKIE_BYTES = 32
_COOKIE_CHARS_MAX = 128


@dataclass(frozen=True, slots=True)
class Browser:
    """``secret`` is the value of its cookie; ``is_new``: the cookie has to be set."""

    secret: str
    is_new: bool = False


class Browsers:
    """Recognizes browsers. The cookie's name is by server: cookies do not know of ports."""

    __slots__ = ("_key", "cookie", "is_secure")

    def __init__(self, server_id: str, *, is_secure: bool) -> None:
        """``server_id`` has no characters that a cookie's name cannot have."""
        self._key = secrets.token_bytes(_COOKIE_BYTES)
        self.is_secure = is_secure
        # The prefix promises that it was set over TLS, by this host, for all paths.
        self.cookie = f"__Host-muster-{server_id}" if is_secure else f"muster-{server_id}"

    def find(self, value: str | None) -> Browser:
        """The browser with this cookie, or a new one."""
        if value and len(value) <= _COOKIE_CHARS_MAX and value.isascii():
            return Browser(value)
        return self.make()

    def make(self) -> Browser:
        """A new browser."""
        return Browser(secrets.token_urlsafe(_COOKIE_BYTES), is_new=True)

    def set_cookie(self, response: Response, browser: Browser) -> None:
        """Make the browser that gets the response this one."""
        response.set_cookie(
            self.cookie,
            browser.secret,
            secure=self.is_secure,
            httponly=True,
            samesite="strict",
        )

    def compute_csrf_token(self, browser: Browser) -> str:
        """What forms that are shown to this browser bring back; it does not tell the cookie."""
        return hmac.new(self._key, browser.secret.encode(), "sha256").hexdigest()
