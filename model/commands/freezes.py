"""Commands that freeze and resume the rebalancing of a group."""

from __future__ import annotations

from model.caller import Caller
from model.ids import GroupId
from model.value import value


@value
class FreezeGroup:
    """Freeze the rebalancing of a consumer group: nothing moves until it is resumed."""

    caller: Caller
    group_id: GroupId
    validate_only: bool = False


@value
class ResumeGroup:
    """End the freeze: the group gets a new target at once."""

    caller: Caller
    group_id: GroupId
    validate_only: bool = False
