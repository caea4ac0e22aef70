"""The command that asks why a group rebalanced."""

from __future__ import annotations

from model.caller import Caller
from model.ids import GroupId
from model.value import value


@value
class ExplainRebalances:
    """Tell the rebalances of a group that began since ``since_ms``, the last one first.

    ``before`` are the time and the epoch of the rebalance before which to begin, ``None`` for the
    last one. An epoch of 0 precedes all others of that time. ``limit`` is how many.
    """

    caller: Caller
    group_id: GroupId
    since_ms: int
    before: tuple[int, int] | None
    limit: int
