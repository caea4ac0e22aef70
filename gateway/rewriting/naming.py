"""What a client is to be told instead of what the broker said: addresses and groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from gateway.rewriting.versions import readable_versions

Address: TypeAlias = tuple[str, int]


class CannotRewrite(Exception):
    """The response must not reach the client: it may name brokers in a way that we cannot read."""


@dataclass(frozen=True, slots=True)
class OwnNode:
    """Muster's node, as clients reach it."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Naming:
    """What brokers and groups are called on this connection.

    ``address_of`` gives the relay of a broker; a broker without one is left out. ``is_here`` says
    whether Muster's node is to be named as the coordinator of a group. Without ``own`` nothing is
    added to the brokers, and no group is here.
    """

    address_of: Callable[[int], Address | None]
    own: OwnNode | None = None
    is_here: Callable[[str], bool] = lambda group_id: False

    def find(self, node_id: int) -> Address | None:
        """The address of a node, which may be Muster's own."""
        own = self.own
        if own is not None and node_id == own.node_id:
            return own.host, own.port
        return self.address_of(node_id)


def check_version(key: int, version: int) -> None:
    """Raise ``CannotRewrite`` for a version of which the format of the response is unknown."""
    if version not in readable_versions(key):
        raise CannotRewrite(f"version {version} of API {key} is unknown")
