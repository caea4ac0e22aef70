"""The assignment problem for mixed subscriptions, in counts.

Partitions of topics with the same subscribers are interchangeable, so such topics form one
*bundle*. A *share* is a (bundle, subscriber) pair; its count is the number of partitions of the
bundle that the member gets. Balancing works on counts alone; the partitions are chosen once, at the
end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.assignors.problem import NOBODY, HeterogeneousSubscriptions, Ints, Members, Problem

NO_BUNDLE = -1

_LARGEST_TABLE = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class ShareGraph:
    """The shares, ordered by bundle, then member. Every bundle has subscribers and partitions.

    Bundles with the most partitions per subscriber come first, then those with the fewest
    subscribers: they leave the least choice, so steps that go through the bundles start there.
    """

    members: int
    bundle_of_topic: Ints  # topics; NO_BUNDLE without subscribers or partitions
    size: Ints  # bundles: partitions in it
    bundle_start: Ints  # bundles + 1: the shares of bundle b are bundle_start[b]..[b + 1]
    bundle: Ints  # shares
    member: Ints  # shares
    by_member: Ints  # shares, ordered by member, then bundle
    bundle_by_member: Ints  # the bundles of by_member
    active: Ints  # the members that have shares
    active_start: Ints  # active: the start of each one's shares in by_member

    @property
    def bundles(self) -> int:
        return len(self.size)

    @property
    def shares(self) -> int:
        return len(self.member)

    def subscribers(self, bundle: int) -> slice:
        """The shares of a bundle."""
        return slice(int(self.bundle_start[bundle]), int(self.bundle_start[bundle + 1]))

    def shares_of(self, member: int) -> Ints:
        """The shares of a member that has any."""
        place = int(np.searchsorted(self.active, member))
        end = self.active_start[place + 1] if place + 1 < len(self.active) else self.shares
        return self.by_member[self.active_start[place] : end]

    def regroup(self, size: Ints, bundle_start: Ints, member: Ints) -> ShareGraph:
        """A graph of the same members with other bundles, of these sizes and subscribers."""
        return _index_members(self.members, self.bundle_of_topic, size, bundle_start, member)

    def loads(self, count: Ints) -> Ints:
        """Partitions per member, given partitions per share."""
        return np.bincount(self.member, weights=count, minlength=self.members).astype(np.int64)


@dataclass(slots=True, eq=False)
class Shares:
    """The counts during balancing."""

    graph: ShareGraph
    held: Ints
    """Per share: partitions that its member owns and may keep."""
    count: Ints
    """Per share: partitions that its member is to get."""
    load: Ints
    """Per member: the sum of its counts, plus `fixed`."""
    fixed: Ints
    """Per member: partitions outside the problem, which it keeps."""

    @staticmethod
    def keeping(graph: ShareGraph, held: Ints, fixed: Ints | None = None) -> Shares:
        if fixed is None:
            fixed = np.zeros(graph.members, dtype=np.int64)
        return Shares(graph, held, held.copy(), graph.loads(held) + fixed, fixed)

    def unassigned(self) -> Ints:
        """Per bundle: partitions that are in no share yet."""
        return self.graph.size - np.add.reduceat(self.count, self.graph.bundle_start[:-1])

    def has_unowned(self) -> bool:
        """Whether any share gets more than its member owns."""
        return bool((self.count > self.held).any())

    def moves(self) -> int:
        """How many partitions are revoked from an owner that could have kept them."""
        return int(np.maximum(self.held - self.count, 0).sum())

    def fewest_moves(self) -> int:
        """A lower bound of the moves of any assignment with this set of loads.

        Cheap, and usually exact if loads are level; 0 if they are not.
        """
        load = self.active_loads()
        level = int(load.min())
        if load.max() - level > 1:
            return 0
        excess = (self.graph.loads(self.held) + self.fixed)[self.graph.active] - level
        excess = np.minimum(excess, self.graph.loads(self.held)[self.graph.active])
        with_odd = min(int((load > level).sum()), int((excess > 0).sum()))
        return int(np.maximum(excess, 0).sum()) - with_odd

    def active_loads(self) -> Ints:
        """The loads of the members that have shares."""
        return self.load[self.graph.active]

    def spread(self) -> int:
        """Highest minus lowest load."""
        load = self.active_loads()
        return int(load.max() - load.min())

    def copy(self) -> Shares:
        return Shares(self.graph, self.held, self.count.copy(), self.load.copy(), self.fixed)


def find_shares(graph: ShareGraph, bundle: Ints, owner: Members) -> Ints:
    """Per partition, one more than its owner's share; 0 without an owner that subscribes.

    `bundle` is per partition.
    """
    owned = (owner != NOBODY) & (bundle != NO_BUNDLE)
    if not owned.any():
        return np.zeros(len(owner), dtype=np.int64)
    cells = graph.bundles * graph.members
    share_key = graph.bundle * graph.members + graph.member  # ascending
    key = np.where(owned, bundle * graph.members + owner, cells)
    if cells <= _LARGEST_TABLE:
        table = np.zeros(cells + 1, dtype=np.int32)
        table[share_key] = np.arange(1, graph.shares + 1)
        return table[key].astype(np.int64)
    found = np.minimum(np.searchsorted(share_key, key), graph.shares - 1)
    return np.where(share_key[found] == key, found + 1, 0)


def make_graph(problem: Problem) -> ShareGraph | None:
    """The graph of any problem; `None` if nothing can be assigned."""
    subscriptions = problem.subscriptions
    if isinstance(subscriptions, HeterogeneousSubscriptions):
        if not problem.partition_counts()[subscriptions.topic].any():
            return None
        return make_share_graph(problem, subscriptions)
    return make_single_bundle(problem) if problem.members and problem.partitions else None


def make_single_bundle(problem: Problem) -> ShareGraph:
    """The graph of a non-empty group in which every member subscribes to every topic."""
    everyone = np.arange(problem.members)
    one = np.zeros(problem.members, dtype=np.int64)
    counts = problem.partition_counts()
    return ShareGraph(
        members=problem.members,
        bundle_of_topic=np.where(counts > 0, 0, NO_BUNDLE),
        size=np.array([problem.partitions]),
        bundle_start=np.array([0, problem.members]),
        bundle=one,
        member=everyone,
        by_member=everyone,
        bundle_by_member=one,
        active=everyone,
        active_start=everyone,
    )


def make_share_graph(problem: Problem, subscriptions: HeterogeneousSubscriptions) -> ShareGraph:
    """The graph of a mixed group. Raise ValueError if no subscribed topic has partitions."""
    topic_start, subscriber = subscriptions.by_topic()
    counts = problem.partition_counts()
    bundle_of_topic, sample = _bundle_topics(topic_start, subscriber, counts)
    if len(sample) == 0:
        raise ValueError("no subscribed topic has partitions")
    bundled = bundle_of_topic != NO_BUNDLE
    size = np.bincount(bundle_of_topic[bundled], weights=counts[bundled]).astype(np.int64)
    width = np.diff(topic_start)[sample]

    order = np.lexsort((width, -size / width))
    size, width, sample = size[order], width[order], sample[order]
    bundle_of_topic[bundled] = np.argsort(order)[bundle_of_topic[bundled]]

    bundle_start = np.append(0, np.cumsum(width))
    skipped = topic_start[sample] - bundle_start[:-1]
    member = subscriber[np.arange(bundle_start[-1]) + np.repeat(skipped, width)]
    return _index_members(problem.members, bundle_of_topic, size, bundle_start, member)


def _index_members(
    members: int, bundle_of_topic: Ints, size: Ints, bundle_start: Ints, member: Ints
) -> ShareGraph:
    """`member` is per share, by bundle, then ascending."""
    by_member = np.sort((member << 32) | np.arange(len(member))) & ((1 << 32) - 1)
    shares_of_member = np.bincount(member, minlength=members)
    active = np.flatnonzero(shares_of_member)
    bundle = np.repeat(np.arange(len(size)), np.diff(bundle_start))
    return ShareGraph(
        members=members,
        bundle_of_topic=bundle_of_topic,
        size=size,
        bundle_start=bundle_start,
        bundle=bundle,
        member=member,
        by_member=by_member,
        bundle_by_member=bundle[by_member],
        active=active,
        active_start=(np.cumsum(shares_of_member) - shares_of_member)[active],
    )


def _bundle_topics(topic_start: Ints, subscriber: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """(the bundle of each topic, one topic of each bundle)."""
    subscribers = subscriber.tobytes()
    byte_start = (topic_start * subscriber.itemsize).tolist()
    bundles: dict[bytes, int] = {}
    sample: list[int] = []
    bundle_of_topic = np.full(len(counts), NO_BUNDLE)
    for topic in np.flatnonzero((counts > 0) & (np.diff(topic_start) > 0)).tolist():
        key = subscribers[byte_start[topic] : byte_start[topic + 1]]
        bundle = bundles.setdefault(key, len(bundles))
        if bundle == len(sample):
            sample.append(topic)
        bundle_of_topic[topic] = bundle
    return bundle_of_topic, np.array(sample, dtype=np.int64)
