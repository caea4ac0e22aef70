"""The command that checks a fencing token."""

from __future__ import annotations

from model.caller import Caller
from model.ids import GroupId, TopicName
from model.value import value


@value
class CheckToken:
    """Check whether the token is that of the partition's owner."""

    caller: Caller
    group_id: GroupId
    topic: TopicName
    partition: int
    token: int
