"""Runs an assignor for the leader of a classic group, on serialized subscriptions.

The JoinGroup response sends the leader the metadata of each member for the chosen protocol, whose
name is that of the assignor. The leader sends each member's assignment with SyncGroup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.assignors.classic.group import Member, number_group
from muster.assignors.classic.registry import ClassicAssignor, OwnedIn, find_assignor
from muster.assignors.embedded.consumer_protocol import (
    HIGHEST_VERSION,
    NO_GENERATION,
    Assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    make_subscription,
)
from muster.assignors.embedded.fields import (
    MalformedProtocolError,
    TopicPartitions,
    group_partitions,
)
from muster.assignors.embedded.sticky_user_data import (
    StickyUserData,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    encode_cooperative_user_data,
    encode_sticky_user_data,
)


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member in the JoinGroup response to the leader."""

    member_id: str
    instance_id: str | None
    metadata: bytes


def compute_assignment_bytes(
    name: str,
    joined: Iterable[JoinedMember],
    partition_counts: Mapping[str, int],
    replica_racks: Mapping[str, Sequence[Collection[str]]] | None = None,
    version: int = HIGHEST_VERSION,
) -> dict[str, bytes]:
    """Each member's serialized assignment, by member id, for SyncGroup.

    Raise MalformedProtocolError, naming the member, if its metadata is not a subscription, and the
    errors of `muster.assignors.classic.compute_assignment`. As with Kafka's leaders, a member with
    unreadable user data owns nothing.
    """
    assignor = find_assignor(name)
    members = [read_member(assignor, member) for member in joined]
    assignment = assignor.compute(number_group(members, partition_counts, replica_racks))
    return {
        member_id: encode_assignment(
            Assignment(tuple(TopicPartitions(t, tuple(ps)) for t, ps in partitions.items())),
            version,
        )
        for member_id, partitions in assignment.items()
    }


def read_member(assignor: ClassicAssignor, joined: JoinedMember) -> Member:
    """Decode a member's metadata. Raise MalformedProtocolError if it is not a subscription."""
    try:
        said = decode_subscription(joined.metadata)
    except MalformedProtocolError as e:
        raise MalformedProtocolError(f"member {joined.member_id!r}: {e}") from None
    owned: Sequence[TopicPartitions] = ()
    generation = NO_GENERATION
    match assignor.owned_in:
        case OwnedIn.USER_DATA:
            user_data = _read_sticky_user_data(said.user_data)
            owned, generation = user_data.partitions, user_data.generation
        case OwnedIn.SUBSCRIPTION:
            owned = said.owned_partitions
            generation = said.generation
            if generation < 0:
                generation = _read_generation(said.user_data)
        case OwnedIn.NOTHING:
            pass
    by_topic: dict[str, list[int]] = {}
    for each in owned:
        by_topic.setdefault(each.topic, []).extend(each.partitions)
    return Member(
        joined.member_id, said.topics, joined.instance_id, said.rack, by_topic, generation
    )


def _read_sticky_user_data(user_data: bytes | None) -> StickyUserData:
    try:
        return decode_sticky_user_data(user_data or b"")
    except MalformedProtocolError:
        return StickyUserData(())


def _read_generation(user_data: bytes | None) -> int:
    try:
        return decode_cooperative_user_data(user_data or b"")
    except MalformedProtocolError:
        return NO_GENERATION


def encode_member_metadata(name: str, member: Member, version: int = HIGHEST_VERSION) -> bytes:
    """The metadata with which a member joins for the assignor ``name``.

    Members of eager assignors have revoked everything before they join, so only their user data can
    say what they owned. Raise UnknownAssignorError and MalformedProtocolError.
    """
    user_data = None
    owned = [(topic, p) for topic, partitions in member.owned.items() for p in partitions]
    assignor = find_assignor(name)
    match assignor.owned_in:
        case OwnedIn.USER_DATA if owned:
            had = StickyUserData(group_partitions(sorted(owned)), member.generation)
            user_data = encode_sticky_user_data(had)
        case OwnedIn.SUBSCRIPTION:
            user_data = encode_cooperative_user_data(member.generation)
        case _:
            pass
    subscription = make_subscription(
        member.topics,
        user_data,
        owned if assignor.owned_in is OwnedIn.SUBSCRIPTION else (),
        member.generation,
        member.rack,
    )
    return encode_subscription(subscription, version)
