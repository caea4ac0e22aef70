"""What members of a classic group hold when it becomes a consumer group.

The leader's assignment says what a member is to have. A cooperative member (KIP-429) may own more
for a while: what the leader takes from it, it gives up when it has heard so, and joins again; and
where a rebalance was begun anew the group has forgotten all assignments, and the member has what it
had. In a classic group nobody gets such a partition before the next generation, which waits for
the member. A consumer group has no generations: that its partitions are held must be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.core.state.classic_group import ClassicGroup, ClassicMember
from coordinator.core.state.conversion import in_slices, weigh_said
from coordinator.core.state.embedded_protocol import (
    decode_assigned_partitions,
    decode_subscription,
)
from coordinator.core.state.steps import Steps
from model.ids import MemberId, TopicName
from model.log.records import TopicPartitions
from model.topics import TopicImage
from model.value import value
from muster.assignors import embedded
from translator.readiness import subscription_of


@value
class Holding:
    """What a member has, and what it has not given up yet."""

    assigned: tuple[TopicPartitions, ...] = ()
    pending: tuple[TopicPartitions, ...] = ()


def read_subscriptions(group: ClassicGroup) -> Steps[dict[MemberId, embedded.Subscription]]:
    """What each member said, which can be read: that was checked. Many say the same."""
    found: dict[MemberId, embedded.Subscription] = {}
    known: dict[bytes, embedded.Subscription] = {}
    for part in in_slices(group.members.values(), weigh_said):
        for member in part:
            metadata = subscription_of(group, member)
            said = known.get(metadata)
            if said is None:
                said = decode_subscription(metadata)
                assert said is not None, "it was checked that it can be read"
                known[metadata] = said
            found[member.member_id] = said
        yield
    return found


def compute_holdings(
    group: ClassicGroup,
    image: TopicImage,
    subscriptions: Mapping[MemberId, embedded.Subscription],
) -> Steps[dict[MemberId, Holding]]:
    """What each member has of the topics that are there.

    A consumer group has one owner for a partition: of several that a leader gave it to, the first
    keeps it, and of several that say that they own what nobody was given, the one with the latest
    generation.
    """
    free = _Free(image)
    found: dict[MemberId, Holding] = {}
    for part in in_slices(group.members.values(), weigh_said):
        for member in part:
            found[member.member_id] = Holding(free.take(_read_assignment(member)))
        yield
    claims = sorted(
        group.members.values(), key=lambda own: -subscriptions[own.member_id].generation
    )
    for part in in_slices(claims, weigh_said):
        for member in part:
            held = free.take(subscriptions[member.member_id].owned_partitions)
            if not held:
                continue
            assigned = found[member.member_id].assigned
            # Without an assignment there is none that takes anything from it.
            holding = Holding(assigned, held) if member.assignment else Holding(held)
            found[member.member_id] = holding
        yield
    return found


def _read_assignment(member: ClassicMember) -> tuple[embedded.TopicPartitions, ...]:
    given = decode_assigned_partitions(member.assignment) if member.assignment else None
    return given or ()


class _Free:
    """The partitions that nobody has taken yet."""

    def __init__(self, image: TopicImage) -> None:
        self._image = image
        self._taken: set[tuple[TopicName, int]] = set()

    def take(self, wanted: Iterable[embedded.TopicPartitions]) -> tuple[TopicPartitions, ...]:
        """As many of these as there are and are free: each topic once, its partitions ascending."""
        merged: dict[TopicName, set[int]] = {}
        for each in wanted:
            merged.setdefault(TopicName(each.topic), set()).update(each.partitions)
        own: list[TopicPartitions] = []
        for name, partitions in merged.items():
            topic = self._image.by_name.get(name)
            if topic is None:
                continue
            free = tuple(
                partition
                for partition in sorted(partitions)
                if 0 <= partition < topic.partitions and (name, partition) not in self._taken
            )
            self._taken.update((name, partition) for partition in free)
            if free:
                own.append(TopicPartitions(topic.topic_id, free))
        return tuple(own)
