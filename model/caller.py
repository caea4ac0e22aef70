"""Who asks something of the coordinator."""

from __future__ import annotations

from typing import Final

from model.value import value


@value
class Caller:
    """Who asks. ``client_host`` is Java's form of an address: ``/127.0.0.1``."""

    principal: str
    client_id: str
    client_host: str


INTERNAL: Final = Caller("", "", "")
"""The coordinator itself: timers, targets, topic changes."""

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of a caller that has not authenticated, as Kafka calls it."""
