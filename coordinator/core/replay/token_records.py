"""Tokens of the partitions that a record passes to a member. See ``coordinator.core.state.tokens``.

A partition passes to a member when its current assignment first holds it: it was neither assigned
to the member before the record nor pending revocation by it. So a tombstone of the current
assignment ends an incarnation of the member, as a static replacement and a rejoin write it.
"""

from __future__ import annotations

from array import array

import numpy as np

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.shard import Shard


def begin_tokens(shard: Shard, first: int) -> None:
    """Set the token of what the records of a load pass; the shard must be empty."""
    shard.state.tokens.next = shard.state.tokens.of_load = first


def end_load(shard: Shard) -> None:
    """All records are loaded: the next token is above those of the load."""
    tokens = shard.state.tokens
    tokens.next, tokens.is_taken = tokens.of_load + 1, False


def pass_partitions(
    shard: Shard, group: ConsumerGroup, entry: Member, before: array[int], revoked: array[int]
) -> None:
    """Give a token to each partition of the member that it did not have, or revoke, before."""
    if entry.assigned == before and entry.pending_revocation == revoked:
        return
    passed = set(entry.assigned)
    passed.update(entry.pending_revocation)
    passed.difference_update(before, revoked)
    if passed:
        tokens = shard.state.tokens
        token_of = np.frombuffer(group.token_of, np.int64)
        token_of[np.fromiter(passed, np.intp, len(passed))] = tokens.next
        tokens.is_taken = True


def pass_all_partitions(shard: Shard, group: ConsumerGroup) -> None:
    """Give a token to each partition with an owner, after a conversion."""
    tokens = shard.state.tokens
    if len(group.owner):
        is_owned = np.frombuffer(group.owner, np.int32) >= 0
        np.frombuffer(group.token_of, np.int64)[is_owned] = tokens.next
    tokens.is_taken = True


def end_command(shard: Shard) -> None:
    """The records of a command are replayed: the next one gives a higher token."""
    tokens = shard.state.tokens
    if tokens.is_taken:
        tokens.next += 1
        tokens.is_taken = False
