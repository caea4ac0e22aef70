"""What a question may ask for: its bounds, and that everything in it exists."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator
from hashlib import sha256
from itertools import count as numbers
from itertools import islice
from typing import Final

from coordinator.core.client_assignors.selection import compute_client_assignor_choice
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, compute_unknown_member
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.freezes import check_not_frozen
from coordinator.core.state.shard import Shard
from model.errors import (
    GroupIdNotFound,
    InvalidPartitions,
    InvalidRequest,
    RebalanceInProgress,
    UnknownTopicOrPartition,
    UnsupportedAssignor,
)
from model.ids import GroupId, InstanceId, MemberId
from model.what_if import WhatIf
from muster.assignors.classic.registry import UnknownAssignorError, find_assignor

CONSUMER: Final = "consumer"
CLASSIC: Final = "classic"
"""Kafka's names of group protocols, as in a client's ``group.protocol``."""

ADD_MAX: Final = 10_000
"""The most members that one question may add."""


def compute_new_member_id(group_id: GroupId, index: int) -> MemberId:
    """An id in the form of those that the server makes: 16 bytes in URL-safe base64.

    Real ones are random; these depend on the group and the index alone.
    """
    digest = sha256(f"{group_id}/{index}".encode()).digest()
    return MemberId(urlsafe_b64encode(digest[:16]).decode().rstrip("="))


def compute_new_member_ids(
    group_id: GroupId, count: int, taken: Collection[MemberId]
) -> Iterator[MemberId]:
    """The ids of new members; a client that chose one of them is another member."""
    ids = (compute_new_member_id(group_id, index) for index in numbers())
    return islice((each for each in ids if each not in taken), count)


def check_what_if(shard: Shard, question: WhatIf, assignors: Collection[str]) -> ConsumerGroup:
    """The group. Raises the error of the first thing in the question that does not exist."""
    group = shard.consumer_groups.get(question.group_id)
    if group is None:
        raise _compute_missing_group(shard, question.group_id)
    reset = shard.resets.get(question.group_id)
    if reset is not None and not reset.is_set:
        raise RebalanceInProgress(
            f"The offsets of group {question.group_id} are being reset: ask again when they are."
        )
    if question.protocol == CLASSIC:
        _check_classic_assignor(question.assignor)
        if not question.resumes:
            check_not_frozen(shard, group.group_id)
    else:
        _check_assignor(group, question.assignor, assignors)
    for name, partitions in question.partitions:
        topic = shard.image.by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"There is no topic {name}.")
        if partitions < topic.partitions:
            raise InvalidPartitions(
                f"Topic {name} already has {topic.partitions} partitions; they cannot be fewer."
            )
    for name_or_id in question.remove:
        find_named_member(group, name_or_id)
    return group


def _check_assignor(group: ConsumerGroup, name: str | None, assignors: Collection[str]) -> None:
    choice = compute_client_assignor_choice(group)
    if choice is not None and name is None:
        raise InvalidRequest(
            f"A member computes the assignment with {choice.name}: only that client knows what it "
            f"would be. Name an assignor of the server to see what it would give."
        )
    if name is not None and name not in assignors:
        known = ", ".join(assignors)
        raise UnsupportedAssignor(f"Assignor {name} is unknown; there are {known}.")


def _check_classic_assignor(name: str | None) -> None:
    if name is None:
        raise InvalidRequest(
            "Members of the classic protocol assign by themselves: name their assignor, "
            "which is one of range, roundrobin, sticky, cooperative-sticky and redundant(n)."
        )
    try:
        find_assignor(name)
    except UnknownAssignorError as error:
        raise UnsupportedAssignor(f"{error}.") from error


def _compute_missing_group(shard: Shard, group_id: GroupId) -> GroupIdNotFound:
    if shard.has_other_group(group_id):
        return GroupIdNotFound(
            f"Group {group_id} is not a consumer group: ask about a classic one with the protocol "
            "that it would use, consumer."
        )
    return GroupIdNotFound(f"Group {group_id} not found.")


def find_named_member(group: ConsumerGroup, name: str) -> Member:
    """The member with this member id or instance id. Raises ``UnknownMemberId``."""
    member = group.member(MemberId(name)) or group.static_member(InstanceId(name))
    if member is None:
        raise compute_unknown_member(group.group_id, MemberId(name))
    return member
