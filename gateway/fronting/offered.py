"""Which versions of an API Muster's node offers in front of a cluster."""

from __future__ import annotations

from typing import Final

from gateway.fronting.front import Front

CONSUMER_PROTOCOL: Final = frozenset({68, 69})
SERVED_HERE: Final = frozenset(
    {8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 36, 42, 47, *CONSUMER_PROTOCOL}
)
"""APIs that never reach the cluster in the client's form: those of groups, and of logins."""


def compute_offered(front: Front, key: int, versions: range) -> range:
    """The part of ``versions``, those that this server can read, that a client may send.

    What the cluster answers, be it in part, is offered as all brokers serve it.
    """
    if key in CONSUMER_PROTOCOL and not front.offers_consumer_protocol:
        return range(0)
    if key in SERVED_HERE:
        return versions
    theirs = front.versions.get(key, range(0))
    return range(max(versions.start, theirs.start), min(versions.stop, theirs.stop))
