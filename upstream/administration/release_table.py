"""The release of brokers, as far as the versions of their APIs tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FETCH: Final = 1
_RELEASES: Final = (
    (18, "4.1"),
    (17, "3.9"),
    (16, "3.7"),
    (14, "3.5"),
    (13, "3.1"),
    (12, "2.7"),
    (11, "2.3"),
)
"""The first release that serves a version of Fetch."""


def compute_release(versions: Mapping[int, range]) -> str:
    """The first release that serves what all brokers serve, such as ``3.9``; empty if unknown."""
    served = versions.get(_FETCH)
    if not served:
        return ""
    return next((f"{name} or later" for version, name in _RELEASES if version <= served[-1]), "")
