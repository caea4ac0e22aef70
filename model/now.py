"""The time at which a command is handled."""

from __future__ import annotations

from typing import NamedTuple


class Now(NamedTuple):
    """The time at which a command is handled.

    ``wall_ms`` is for record timestamps and offset expiry, and never goes back. ``monotonic_ms`` is
    the clock of deadlines.
    """

    wall_ms: int
    monotonic_ms: int
