"""The command that asks what a change would do to a group."""

from __future__ import annotations

from model.caller import Caller
from model.ids import GroupId
from model.value import value
from model.what_if import WhatIf


@value
class ComputeWhatIf:
    """Compute what the changes would do; nothing changes."""

    caller: Caller
    group_id: GroupId
    question: WhatIf
