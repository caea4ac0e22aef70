"""The input of an assignor: partitions, members, subscriptions and previous owners.

Everything is numbered: the caller numbers topics, partitions and members, and converts the result
back to names. Partitions are numbered 0..n-1, and topic t has the contiguous range
`topic_start[t]..topic_start[t + 1]`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Members = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

NOBODY = -1
"""In `Problem.owner`: no previous owner. In a result: no member subscribes to the topic."""

NO_RACK = -1
"""In `Racks.of_member`: the member reported no rack."""

DEFAULT_SKEW_LIMIT = 0.05


class Subscriptions(ABC):
    """The subscriptions of all members. Created by `all`, `of` or `csr`."""

    __slots__ = ()

    members: int
    topics: int

    @property
    @abstractmethod
    def is_homogeneous(self) -> bool:
        """Whether every member subscribes to every topic of the problem."""

    @staticmethod
    def all(members: int, topics: int) -> Subscriptions:
        """Every member subscribes to every topic."""
        return HomogeneousSubscriptions(members, topics)

    @staticmethod
    def of(topics_of_members: Sequence[Iterable[int]], topics: int) -> Subscriptions:
        """One collection of topic numbers per member; order and duplicates do not matter."""
        lists = [sorted(set(chosen)) for chosen in topics_of_members]
        member_start = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        topic = np.array([t for chosen in lists for t in chosen], dtype=np.int64)
        return Subscriptions.csr(member_start, topic, topics)

    @staticmethod
    def csr(member_start: Ints, topic: Ints, topics: int) -> Subscriptions:
        """Member m subscribes to `topic[member_start[m]:member_start[m + 1]]`, ascending.

        Raise ValueError if the arrays are inconsistent.
        """
        members = len(member_start) - 1
        listed = HeterogeneousSubscriptions(members, topics, member_start, topic)
        if len(topic) == members * topics:
            return HomogeneousSubscriptions(members, topics)
        return listed


@dataclass(frozen=True, slots=True)
class HomogeneousSubscriptions(Subscriptions):
    members: int
    topics: int

    def __post_init__(self) -> None:
        if self.members < 0 or self.topics < 0:
            raise ValueError(f"negative count: {self.members} members, {self.topics} topics")

    @property
    def is_homogeneous(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False)
class HeterogeneousSubscriptions(Subscriptions):
    """A list of topics per member, as two arrays (compressed sparse rows)."""

    members: int
    topics: int
    member_start: Ints  # members + 1
    topic: Ints

    def __post_init__(self) -> None:
        _check_offsets("member_start", self.member_start, len(self.topic))
        if len(self.topic) == 0:
            return
        if self.topic.min() < 0 or self.topic.max() >= self.topics:
            raise ValueError(f"a subscribed topic is not in 0..{self.topics - 1}")
        member_then_topic = self.member_of_entry() * self.topics + self.topic
        if not (member_then_topic[1:] > member_then_topic[:-1]).all():
            raise ValueError("the topics of a member must be ascending, without duplicates")

    @property
    def is_homogeneous(self) -> bool:
        return False

    def member_of_entry(self) -> Ints:
        """The member of each entry of `topic`."""
        return np.repeat(np.arange(self.members), np.diff(self.member_start))

    def by_topic(self) -> tuple[Ints, Ints]:
        """(topic_start, member): topic t has `member[topic_start[t]:topic_start[t + 1]]`."""
        entry = self.topic * max(self.members, 1) + self.member_of_entry()
        entry.sort()
        topic_start = np.zeros(self.topics + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.topic, minlength=self.topics), out=topic_start[1:])
        of_topic = np.repeat(np.arange(self.topics), np.diff(topic_start))
        return topic_start, entry - of_topic * self.members


@dataclass(frozen=True, slots=True, eq=False)
class Racks:
    """The racks of members and replicas, numbered from 0.

    The replicas of partition p are in `replica[replica_start[p]:replica_start[p + 1]]`, which is
    empty if they are unknown. Raise ValueError if the arrays are inconsistent.
    """

    of_member: Ints  # members; NO_RACK if it reported none
    replica_start: Ints  # partitions + 1
    replica: Ints

    def __post_init__(self) -> None:
        _check_offsets("replica_start", self.replica_start, len(self.replica))
        if self.replica.min(initial=0) < 0 or self.of_member.min(initial=0) < NO_RACK:
            raise ValueError("a rack number is negative")

    @property
    def count(self) -> int:
        """The number of racks: one more than the highest rack number."""
        return 1 + int(max(self.of_member.max(initial=-1), self.replica.max(initial=-1)))


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The load of each partition, in any unit, and how uneven members may be.

    Raise ValueError for a weight that is negative or not finite.
    """

    of_partition: Floats
    skew_limit: float = DEFAULT_SKEW_LIMIT
    """The fraction of its fair share by which a member may exceed it before it loses partitions."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.of_partition).all() and self.of_partition.min(initial=0) >= 0):
            raise ValueError("a weight is negative or not finite")
        if not 0 <= self.skew_limit <= 1:
            raise ValueError(f"the skew limit {self.skew_limit} is not between 0 and 1")


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """What members own outside the problem: it counts for balance, but cannot move."""

    partitions: Ints  # members: number of partitions
    weight: Floats  # members: their total weight


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One assignment to compute.

    Raise ValueError if the arrays are inconsistent.
    """

    topic_start: Ints  # topics + 1
    members: int
    """Members are 0..members-1, in Kafka's order: those with an instance id first, by instance
    id, then the others by member id. The caller sorts them, so the result does not depend on the
    order in which they joined."""
    owner: Members  # partitions
    """The member of the partition in the previous target, or NOBODY. An owner that does not
    subscribe to the topic counts as NOBODY."""
    subscriptions: Subscriptions
    racks: Racks | None = None
    weights: Weights | None = None
    fixed: Fixed | None = None

    def __post_init__(self) -> None:
        _check_offsets("topic_start", self.topic_start, len(self.owner))
        shape = (self.subscriptions.members, self.subscriptions.topics)
        if shape != (self.members, self.topics):
            raise ValueError(
                f"subscriptions are for {shape[0]} members and {shape[1]} topics, "
                f"not for {self.members} and {self.topics}"
            )
        if len(self.owner) and not -1 <= self.owner.min() <= self.owner.max() < self.members:
            raise ValueError(f"an owner is neither -1 nor a member in 0..{self.members - 1}")
        self._check_extras()

    def _check_extras(self) -> None:
        racks, weights, fixed = self.racks, self.weights, self.fixed
        if racks is not None:
            _check_length("racks", len(racks.of_member), self.members)
            _check_length("replica_start", len(racks.replica_start), self.partitions + 1)
        if weights is not None:
            _check_length("weights", len(weights.of_partition), self.partitions)
        if fixed is not None:
            _check_length("fixed partitions", len(fixed.partitions), self.members)
            _check_length("fixed weight", len(fixed.weight), self.members)

    @property
    def topics(self) -> int:
        return len(self.topic_start) - 1

    @property
    def partitions(self) -> int:
        return len(self.owner)

    def partition_counts(self) -> Ints:
        """Number of partitions of each topic."""
        return np.diff(self.topic_start)

    def topic_of_partition(self) -> Ints:
        return np.repeat(np.arange(self.topics), self.partition_counts())

    def restrict(self, kept: Flags, fixed: Fixed | None = None) -> Problem:
        """The same problem with only these partitions, renumbered in order."""
        number = np.append(0, np.cumsum(kept))
        racks, weights = self.racks, self.weights
        if racks is not None:
            width = np.diff(racks.replica_start)
            racks = Racks(
                racks.of_member,
                np.append(0, np.cumsum(width[kept])),
                racks.replica[np.repeat(kept, width)],
            )
        if weights is not None:
            weights = Weights(weights.of_partition[kept], weights.skew_limit)
        return Problem(
            number[self.topic_start],
            self.members,
            self.owner[kept],
            self.subscriptions,
            racks,
            weights,
            fixed,
        )


def compute_fixed(problem: Problem, pinned: Members) -> Fixed:
    """What members own by pins; `pinned` has NOBODY for partitions without a pin."""
    is_pinned = pinned != NOBODY
    owner = pinned[is_pinned]
    partitions = np.bincount(owner, minlength=problem.members)
    weight = partitions.astype(np.float64)
    if problem.weights is not None:
        weight = np.zeros(problem.members)
        np.add.at(weight, owner, problem.weights.of_partition[is_pinned])
    return Fixed(partitions, weight)


def _check_length(name: str, length: int, expected: int) -> None:
    if length != expected:
        raise ValueError(f"{name} has {length} entries, not {expected}")


def _check_offsets(name: str, start: Ints, total: int) -> None:
    if len(start) == 0 or start[0] != 0 or start[-1] != total or (np.diff(start) < 0).any():
        raise ValueError(f"{name} must ascend from 0 to {total}")
