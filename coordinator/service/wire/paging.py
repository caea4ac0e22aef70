"""Paging of a list that is sorted by name; pure.

A page token holds the last name of the page before, so it stays valid when the list changes. It
also holds a digest of the filters: AIP-158 requires that a token fails with other filters.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import hashlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from coordinator.runtime.loop.slices import Steps
from coordinator.service.wire.error_statuses import InvalidField

Name = TypeVar("Name", bound=str)

SLICE: Final = 500
"""Names looked at in one event-loop iteration, each in some 5 µs."""
DIGITS_MAX: Final = 19
"""Digits of the largest number of 64 bits with a sign."""


class Page(NamedTuple):
    """The maximum number of entries, and the name to continue after (``None`` for the first)."""

    size: int
    after: str | None


def compute_page(
    page_size: int, page_token: str, filters: Sequence[object], default: int, maximum: int
) -> Page:
    """Decode the page that a request asks for; raises ``InvalidField``."""
    if page_size < 0:
        raise InvalidField("page_size", "page_size is below 0")
    size = min(page_size or default, maximum)
    if not page_token:
        return Page(size, None)
    try:
        raw = base64.urlsafe_b64decode(page_token.encode("ascii"))
        digest, after = raw[:8], raw[8:].decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidField("page_token", "page_token is invalid") from error
    if digest != _compute_digest(filters):
        raise InvalidField("page_token", "page_token is from a request with other filters")
    return Page(size, after)


def compute_page_token(after: str, filters: Sequence[object]) -> str:
    """Encode the token of the page that follows the name ``after``."""
    raw = _compute_digest(filters) + after.encode()
    return base64.urlsafe_b64encode(raw).decode("ascii")


def decode_number(text: str, maximum: int) -> int:
    """A number in a page token, which a client may have made up; raises ``InvalidField``.

    What is above ``maximum`` is taken as the maximum.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX):
        raise InvalidField("page_token", "page_token is invalid")
    return min(int(text), maximum)


def compute_slice(names: Sequence[str], page: Page) -> tuple[slice, bool]:
    """Compute the slice of the sorted names on the page, and whether more follow."""
    start = 0 if page.after is None else bisect.bisect_right(names, page.after)
    return slice(start, start + page.size), start + page.size < len(names)


def compute_visible(
    names: Sequence[Name], sees: Callable[[Name], bool], page: Page
) -> Steps[tuple[list[Name], bool]]:
    """The sorted names on the page that the caller sees, a slice at a time; whether more follow."""
    start = 0 if page.after is None else bisect.bisect_right(names, page.after)
    found: list[Name] = []
    for number in range(start, len(names)):
        if sees(names[number]):
            if len(found) == page.size:
                return found, True
            found.append(names[number])
        if (number - start) % SLICE == SLICE - 1:
            yield
    return found, False


def _compute_digest(filters: Sequence[object]) -> bytes:
    return hashlib.blake2b(repr(list(filters)).encode(), digest_size=8).digest()
