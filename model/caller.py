"""The principal and client that a command comes from."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from model.value import value


@value
class Caller:
    """The origin of a command. ``client_host`` has Java's address format: ``/127.0.0.1``.

    ``groups`` are further principals that ACLs may be about, ``Group:NAME``: the scopes of a token.
    ``listener`` is the name of that which it connected to, for the audit log alone.
    """

    principal: str
    client_id: str
    client_host: str
    groups: tuple[str, ...] = ()
    listener: str = field(default="", compare=False)


INTERNAL: Final = Caller("", "", "")
"""The coordinator itself: timers, target assignments, topic changes."""

ANONYMOUS: Final = "User:ANONYMOUS"
"""Kafka's principal for a client that has not authenticated."""
