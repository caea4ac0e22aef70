"""The fencing tokens that a response tells a member, before its record is replayed: pure.

``coordinator.core.replay.token_records`` gives the tokens; both must agree.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, Member
from coordinator.core.state.shard import Shard

_FEW: Final = 16
"""So many numbers are searched faster than made a set."""


def begins_again(member: Member, epoch: int) -> bool:
    """Whether a member that owns partitions joins at epoch 0: it may be another process by now.

    Classic members have no epoch 0: their rejoins are part of each rebalance.
    """
    return (
        epoch == JOIN_EPOCH
        and member.member_epoch > JOIN_EPOCH
        and bool(member.assigned or member.pending_revocation)
        and member.classic is None
    )


def get_held(member: Member) -> Collection[int]:
    """The partitions that stay with the member if it has them after its next record."""
    if not member.pending_revocation:
        return member.assigned
    return {*member.assigned, *member.pending_revocation}


def compute_tokens(
    shard: Shard, group: ConsumerGroup, assigned: tuple[int, ...], kept: Collection[int]
) -> tuple[tuple[int, ...], ...]:
    """The tokens of ``assigned`` once the record of this command is replayed."""
    token_of, token = group.token_of, shard.next_token
    if len(kept) > _FEW:
        kept = frozenset(kept)
    found = {number: token_of[number] if number in kept else token for number in assigned}
    return group.numbers.tokens_of(assigned, found)
