"""The members of a classic group as its leader knows them, and the same in numbers.

Nothing depends on the order in which members, topics or partitions are given, nor on hashes:
members are numbered in Kafka's order, topics by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.assignors.embedded.consumer_protocol import NO_GENERATION
from muster.assignors.problem import (
    HeterogeneousSubscriptions,
    Ints,
    Members,
    Problem,
    Subscriptions,
)

GroupAssignment = dict[str, dict[str, list[int]]]
"""Member id -> topic -> partitions, ascending. It contains every member of the group."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member and its subscription.

    ``owned`` are the partitions that the member claims to own, and ``generation`` the generation in
    which it got them, NO_GENERATION if unknown. `range` and `roundrobin` ignore both; `roundrobin`
    and `redundant` ignore the rack.
    """

    member_id: str
    topics: Collection[str]
    instance_id: str | None = None
    rack: str | None = None
    owned: Mapping[str, Collection[int]] = field(default_factory=dict)
    generation: int = NO_GENERATION


@dataclass(frozen=True, slots=True, eq=False)
class NumberedGroup:
    """Members numbered 0..m-1, and partitions 0..n-1 of the topics they subscribe to."""

    members: tuple[Member, ...]
    """In Kafka's order: members with an instance id first, by that, then others by member id."""
    topics: tuple[str, ...]
    """Existing topics with a subscriber, by name."""
    topic_start: Ints  # topics + 1: topic t has partitions topic_start[t]..topic_start[t + 1]
    subscriptions: Subscriptions
    replica_racks: tuple[tuple[frozenset[str], ...], ...]
    """Per topic and partition, the racks of its replicas; empty sets if unknown."""

    @property
    def partitions(self) -> int:
        return int(self.topic_start[-1])

    def subscribers(self) -> list[Ints]:
        """Per topic, the members that subscribe to it, ascending."""
        if not isinstance(self.subscriptions, HeterogeneousSubscriptions):
            return [np.arange(len(self.members))] * len(self.topics)
        start, member = self.subscriptions.by_topic()
        return np.split(member, start[1:-1])

    def make_problem(self, owner: Members) -> Problem:
        return Problem(self.topic_start, len(self.members), owner, self.subscriptions)

    def topic_of_partition(self) -> Ints:
        return np.repeat(np.arange(len(self.topics)), np.diff(self.topic_start))

    def bundle_of_partition(self) -> Ints:
        """Per partition, a number that is equal for topics with the same subscribers."""
        if self.subscriptions.is_homogeneous:
            return np.zeros(self.partitions, dtype=np.int64)
        bundles: dict[bytes, int] = {}
        of_topic = [bundles.setdefault(who.tobytes(), len(bundles)) for who in self.subscribers()]
        return np.array(of_topic, dtype=np.int64)[self.topic_of_partition()]

    def name_assignment(self, partition: Ints, member: Ints) -> GroupAssignment:
        """The assignment by names, from (partition, member) pairs in any order."""
        assignment: GroupAssignment = {each.member_id: {} for each in self.members}
        if len(partition) == 0:
            return assignment
        pair = np.sort(member * self.partitions + partition)
        member, partition = np.divmod(pair, self.partitions)
        topic = self.topic_of_partition()[partition]
        changes = (member[1:] != member[:-1]) | (topic[1:] != topic[:-1])
        run = np.append(0, np.flatnonzero(changes) + 1)
        ends = np.append(run[1:], len(pair))
        number = (partition - self.topic_start[topic]).tolist()
        runs = zip(
            member[run].tolist(), topic[run].tolist(), run.tolist(), ends.tolist(), strict=True
        )
        for who, what, start, end in runs:
            assignment[self.members[who].member_id][self.topics[what]] = number[start:end]
        return assignment

    def name_target(self, target: Members) -> GroupAssignment:
        """The assignment by names, from the member of each partition, NOBODY for none."""
        partition = np.flatnonzero(target >= 0)
        return self.name_assignment(partition, target[partition].astype(np.int64))


def number_group(
    members: Iterable[Member],
    partition_counts: Mapping[str, int],
    replica_racks: Mapping[str, Sequence[Collection[str]]] | None = None,
) -> NumberedGroup:
    """Number the members and partitions. A topic without a count, or with 0, does not exist.

    Raise ValueError for a duplicate member id or a negative count.
    """
    ordered = tuple(sorted(members, key=_member_order))
    if len({member.member_id for member in ordered}) < len(ordered):
        raise ValueError("two members have the same member id")
    for topic, count in partition_counts.items():
        if count < 0:
            raise ValueError(f"topic {topic!r} has {count} partitions")
    chosen = {tuple(member.topics) for member in ordered}
    subscribed = {topic for topics in chosen for topic in topics}
    topics = tuple(sorted((t for t in subscribed if partition_counts.get(t, 0)), key=_java_order))
    counts = [partition_counts[topic] for topic in topics]
    racks = replica_racks or {}
    return NumberedGroup(
        ordered,
        topics,
        np.cumsum([0, *counts], dtype=np.int64),
        _number_subscriptions(ordered, topics),
        tuple(_complete_racks(racks.get(t, ()), n) for t, n in zip(topics, counts, strict=True)),
    )


def _member_order(member: Member) -> tuple[bool, bytes, bytes]:
    instance_id = member.instance_id
    by_instance = b"" if instance_id is None else _java_order(instance_id)
    return instance_id is None, by_instance, _java_order(member.member_id)


def _java_order(text: str) -> bytes:
    """A sort key in the order of Java strings, that of UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def _number_subscriptions(members: tuple[Member, ...], topics: tuple[str, ...]) -> Subscriptions:
    number = {topic: i for i, topic in enumerate(topics)}
    known: dict[tuple[str, ...], list[int]] = {}
    lists = []
    for member in members:
        said = tuple(member.topics)
        if said not in known:
            known[said] = sorted({number[topic] for topic in said if topic in number})
        lists.append(known[said])
    member_start = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    topic = np.array([t for chosen in lists for t in chosen], dtype=np.int64)
    return Subscriptions.csr(member_start, topic, len(topics))


_NO_RACKS: frozenset[str] = frozenset()


def _complete_racks(racks: Sequence[Collection[str]], count: int) -> tuple[frozenset[str], ...]:
    if not racks:
        return (_NO_RACKS,) * count
    known = tuple(frozenset(each) for each in racks[:count])
    return known + (_NO_RACKS,) * (count - len(known))
