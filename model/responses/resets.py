"""Responses to commands that set offsets of a group from outside of it."""

from __future__ import annotations

from model.value import value


@value
class OffsetsReset:
    """Offsets were set, or could be.

    ``revision`` names the group as it is: it changes with each rebalance.
    """

    revision: str
    is_live: bool = False
    group_epoch: int = 0
