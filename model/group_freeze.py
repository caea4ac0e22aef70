"""The freeze of a group's rebalancing."""

from __future__ import annotations

from model.value import value


@value
class GroupFreeze:
    """Rebalancing is frozen since ``since_ms`` (wall), by a principal."""

    since_ms: int
    principal: str
