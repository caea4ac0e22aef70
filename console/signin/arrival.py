"""Where a request comes from: a page of ours, a link elsewhere, or a program."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class Arrival(Enum):
    """How a request got here, as far as the browser tells (``Sec-Fetch-*``)."""

    OWN = auto()
    """From a page of ours, typed, or by a program that is no browser."""

    LINK = auto()
    """By a link on a page of somebody else: the cookie was not sent."""

    FOREIGN = auto()
    """A page of somebody else asks for it in the background."""


def find_arrival(method: str, headers: Mapping[str, str]) -> Arrival:
    """How a request got here."""
    site = headers.get("sec-fetch-site", "none")
    if site in ("none", "same-origin"):
        return Arrival.OWN
    if headers.get("sec-fetch-mode") != "navigate" or method != "GET":
        return Arrival.FOREIGN
    # What is served elsewhere on this host is of the same site, and the cookie was sent.
    return Arrival.LINK if site == "cross-site" else Arrival.OWN
