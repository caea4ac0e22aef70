"""Whose a fencing token is: pure."""

from __future__ import annotations

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH
from coordinator.core.state.shard import Shard
from coordinator.core.state.tokens import NO_TOKEN
from model.commands.ownership import CheckToken
from model.ids import TopicName
from model.responses.ownership import CheckTokenResponse, Ownership


def check_token(shard: Shard, command: CheckToken) -> CheckTokenResponse:
    """Compare the token with that of the partition's owner.

    Tokens that were given before the load are not known any more. While the partition has the owner
    that it had then, such a token may be this owner's.
    """
    if not NO_TOKEN < command.token < shard.next_token:
        return CheckTokenResponse(Ownership.UNKNOWN)
    group = shard.consumer_groups.get(command.group_id)
    if group is None:
        classic = shard.classic_group(command.group_id)
        has_members = classic is not None and bool(classic.members)
        return CheckTokenResponse(Ownership.UNKNOWN if has_members else Ownership.LOST)
    current = _find_owners_token(shard, group, command.topic, command.partition)
    if current == command.token:
        return CheckTokenResponse(Ownership.OWNER)
    is_older = command.token < shard.token_of_load == current
    return CheckTokenResponse(Ownership.UNKNOWN if is_older else Ownership.LOST)


def _find_owners_token(shard: Shard, group: ConsumerGroup, name: TopicName, partition: int) -> int:
    """The token of the partition's owner; ``NO_TOKEN`` if it has none.

    A static member that has left keeps its partitions for its successor, and owns none.
    """
    topic = shard.image.by_name.get(name)
    if topic is None or not 0 <= partition < group.numbers.partitions(topic.topic_id):
        return NO_TOKEN
    (number,) = group.numbers.numbers_of(topic.topic_id, (partition,))
    slot = group.owner[number]
    owner = group.slots[slot] if slot >= 0 else None
    if owner is None or owner.member_epoch == STATIC_LEAVE_EPOCH:
        return NO_TOKEN
    return group.token_of[number]
