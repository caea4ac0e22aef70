"""Groups whose rebalancing is frozen: what they refuse, and how a freeze ends with its group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.errors import FreezeRefused
from model.ids import GroupId
from model.log.side_records import GroupFreezeKey, SideRecord

if TYPE_CHECKING:
    from coordinator.core.state.shard import Shard


def check_not_frozen(shard: Shard, group_id: GroupId) -> None:
    """Raise ``FreezeRefused`` for a frozen group: a change that needs a new target has to wait."""
    freeze = shard.freezes.get(group_id)
    if freeze is not None:
        raise FreezeRefused(
            f"Rebalancing of group {group_id} is frozen by {freeze.principal}: resume it first "
            "(muster group resume)."
        )


def compute_freeze_end(shard: Shard, group_id: GroupId) -> tuple[SideRecord, ...]:
    """The side record that ends the freeze of a group that is removed; none if it has none."""
    if group_id not in shard.freezes:
        return ()
    return (SideRecord(GroupFreezeKey(shard.partition, group_id), None),)
