"""The partitions that members of a classic group own at its upgrade.

The leader's assignment is what a member should own. A cooperative member (KIP-429) may own more: it
revokes partitions only after it has received the new assignment, and then rejoins; and when a
rebalance restarts, the group drops all assignments while members keep their partitions. In a
classic group no other member gets such a partition before the next generation, which waits for its
owner. A consumer group has no such barrier, so it must know the actual owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicMember
from coordinator.core.state.classic.embedded_protocol import (
    decode_assigned_partitions,
    decode_subscription,
)
from coordinator.core.state.conversion import in_slices, weigh_said
from coordinator.core.state.steps import Steps
from model.ids import MemberId, TopicName
from model.log.records import TopicPartitions
from model.topics import TopicImage
from model.value import value
from muster.assignors import embedded
from translator.readiness import subscription_of


@value
class Holding:
    """The assigned partitions of a member, and those pending revocation."""

    assigned: tuple[TopicPartitions, ...] = ()
    pending: tuple[TopicPartitions, ...] = ()


def read_subscriptions(group: ClassicGroup) -> Steps[dict[MemberId, embedded.Subscription]]:
    """The subscription of each member; ``check_upgrade`` has found them valid.

    Equal ones are decoded once.
    """
    found: dict[MemberId, embedded.Subscription] = {}
    known: dict[bytes, embedded.Subscription] = {}
    for part in in_slices(group.members.values(), weigh_said):
        for member in part:
            metadata = subscription_of(group, member)
            said = known.get(metadata)
            if said is None:
                said = decode_subscription(metadata)
                assert said is not None, "check_upgrade has decoded it"
                known[metadata] = said
            found[member.member_id] = said
        yield
    return found


def compute_holdings(
    group: ClassicGroup,
    image: TopicImage,
    subscriptions: Mapping[MemberId, embedded.Subscription],
) -> Steps[dict[MemberId, Holding]]:
    """The partitions of each member, of existing topics only.

    In a consumer group a partition has one owner. If the leader assigned it to several members, the
    first one keeps it. If several members claim an unassigned partition, the claim with the latest
    generation wins.
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
            # Without an assignment nothing has been taken from the member: it keeps its partitions.
            holding = Holding(assigned, held) if member.assignment else Holding(held)
            found[member.member_id] = holding
        yield
    return found


def _read_assignment(member: ClassicMember) -> tuple[embedded.TopicPartitions, ...]:
    given = decode_assigned_partitions(member.assignment) if member.assignment else None
    return given or ()


class _Free:
    """The partitions that have no owner yet."""

    def __init__(self, image: TopicImage) -> None:
        self._image = image
        self._taken: set[tuple[TopicName, int]] = set()

    def take(self, wanted: Iterable[embedded.TopicPartitions]) -> tuple[TopicPartitions, ...]:
        """Take those that exist and are free; each topic once, its partitions ascending."""
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
