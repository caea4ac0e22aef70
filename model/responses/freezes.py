"""Responses to commands that freeze and resume the rebalancing of a group."""

from __future__ import annotations

from model.ids import MemberId
from model.value import value
from model.what_if import Move


@value
class GroupFrozen:
    """The group is frozen, or could be.

    ``moves`` are still under way and come to their end; partitions that they leave without an
    owner have no destination. ``without_target`` are members that get nothing until the group is
    resumed. Of very many the first are listed; the counts are those of all.
    """

    group_epoch: int
    moves: tuple[Move, ...] = ()
    without_target: tuple[MemberId, ...] = ()
    moves_count: int = 0
    without_target_count: int = 0


@value
class GroupResumed:
    """The freeze has ended, or could be. ``group_epoch`` is the one that the new target is for."""

    group_epoch: int
    since_ms: int
    principal: str
