"""Responses to commands that set offsets of a group from outside of it."""

from __future__ import annotations

from model.ids import MemberId
from model.value import value


@value
class OffsetsReset:
    """Offsets were set, or could be.

    ``revision`` names the group as it is: it changes with each rebalance. ``is_live``: the group
    has members; the offsets are set once these have given the partitions up.
    """

    revision: str
    is_live: bool = False
    group_epoch: int = 0


@value
class ResetProgress:
    """The last reset of a group with members; ``group_epoch`` is 0 if there was none.

    ``waits_for`` are members that have not given all partitions up, with the client id and host of
    each.
    """

    group_epoch: int = 0
    is_set: bool = False
    waits_for: tuple[tuple[MemberId, str, str], ...] = ()
