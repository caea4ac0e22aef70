"""The response that tells why a group rebalanced."""

from __future__ import annotations

from model.ids import GroupId
from model.past.rebalances import EndedRebalance, UnreadableRebalance
from model.value import value


@value
class ExplainGroupResponse:
    """The rebalances, the last one first; ``has_more`` if older ones were asked for, too."""

    group_id: GroupId
    rebalances: tuple[EndedRebalance | UnreadableRebalance, ...]
    has_more: bool = False
