"""Addresses of pages. An id is one segment of a path, whatever is in it."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote, urlencode

ESCAPE: Final = "~"
"""Before ids that no segment can be: browsers take ``.`` and ``..`` away, also ``%2E``."""


def encode_segment(text: str) -> str:
    """A segment of a path that stands for the text."""
    if text in ("", ".", "..") or text.startswith(ESCAPE):
        text = ESCAPE + text
    return quote(text, safe="")


def decode_segment(segment: str) -> str:
    """The text that a segment, still in percent-encoding, stands for."""
    return unquote(segment).removeprefix(ESCAPE)


def make_url(*segments: str, **query: object) -> str:
    """A path of these segments, with what of the query is neither ``None`` nor empty."""
    path = "/" + "/".join(encode_segment(segment) for segment in segments)
    asked = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(asked)}" if asked else path


def is_own_path(text: str) -> bool:
    """Whether a browser that is sent there stays here."""
    return text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
