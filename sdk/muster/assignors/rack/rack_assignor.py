"""The `rack` assignor: partitions go to members in a rack of their replicas if balance allows.

It implements the intent of KIP-881, which Kafka's server-side assignors ignore. Members are
balanced as by `uniform`. Among all equally balanced assignments it searches for one with the most
local partitions (with a replica in the member's rack), and among those for one with few moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.assignors.problem import NO_RACK, NOBODY, Flags, Ints, Members, Problem, Racks
from muster.assignors.rack.rack_exchange import exchange_across_bundles
from muster.assignors.rack.rack_transport import Transport, Work, deal_locally, improve
from muster.assignors.shares.count_placement import deal_in_turns, find_excess
from muster.assignors.shares.leveling import pour
from muster.assignors.shares.member_shares import NO_BUNDLE, ShareGraph, find_shares, make_graph
from muster.assignors.uniform.uniform_assignor import assign_uniform

_BITS = 62
_LARGEST_TABLE = 1 << 24


def assign_rack(problem: Problem) -> Members:
    """The member of each partition; NOBODY if no member subscribes.

    Same as `uniform` if no racks are known.
    """
    target = assign_uniform(problem)
    racks = problem.racks
    if racks is None or len(racks.replica) == 0 or (racks.of_member == NO_RACK).all():
        return target
    graph = make_graph(problem)
    if graph is None:
        return target
    bundle = graph.bundle_of_topic[problem.topic_of_partition()]
    places = _Places.of(problem, graph, bundle, racks)
    work = Work()
    for which in range(graph.bundles):
        _improve_bundle(problem, places, which, target, work)
    if graph.bundles > 1:
        exchange_across_bundles(
            problem,
            graph,
            bundle,
            kind=places.kind,
            is_local=places.is_local,
            rack_of_member=places.rack_of_member,
            target=target,
        )
    if _is_as_good(problem, places, target):
        return places.owner
    return target


def _is_as_good(problem: Problem, places: _Places, target: Members) -> bool:
    """Whether the current owners are as balanced and as local as the target.

    If so nothing moves: the search ends at one of several equally good assignments, depending on
    its start.
    """
    owner = places.owner
    if ((owner == NOBODY) & (target != NOBODY)).any():
        return False
    unevenness = [int((_loads(problem, answer) ** 2).sum()) for answer in (owner, target)]
    local = [_count_local(places, answer) for answer in (owner, target)]
    return unevenness[0] <= unevenness[1] and local[0] >= local[1]


def _count_local(places: _Places, answer: Members) -> int:
    has = np.flatnonzero(answer != NOBODY)
    rack = places.rack_of_member[answer[has]]
    return int(places.is_local[places.kind[has], rack].sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """The racks of members and replicas, renumbered: racks with members, and one for no rack."""

    graph: ShareGraph
    racks: int
    rack_of_member: Ints
    kind: Ints  # partitions
    is_local: Flags  # kinds, racks
    owner: Members  # partitions: owners that subscribe
    by_bundle: Ints  # the partitions, by bundle
    bundle_start: Ints

    @staticmethod
    def of(problem: Problem, graph: ShareGraph, bundle: Ints, racks: Racks) -> _Places:
        known = np.unique(racks.of_member[racks.of_member != NO_RACK])
        number = np.full(racks.count + 1, len(known))
        number[known] = np.arange(len(known))
        kind, is_local = _find_kinds(number[racks.replica], racks.replica_start, len(known))
        owner = np.append(NOBODY, graph.member)[find_shares(graph, bundle, problem.owner)]
        assignable = np.flatnonzero(bundle != NO_BUNDLE)
        order = assignable[np.argsort(bundle[assignable], kind="stable")]
        start = np.searchsorted(bundle[order], np.arange(graph.bundles + 1))
        return _Places(
            graph,
            len(known) + 1,
            number[racks.of_member],
            kind,
            is_local,
            owner.astype(np.int32),
            order,
            start,
        )


def _find_kinds(replica: Ints, replica_start: Ints, racks: int) -> tuple[Ints, Flags]:
    """(the kind of each partition, per kind and rack whether it has a replica there).

    `replica` has racks of members, and `racks` for any other. If kinds times racks exceeds the
    limit, nothing is local.
    """
    partitions = len(replica_start) - 1
    partition = np.repeat(np.arange(partitions), np.diff(replica_start))
    kind = np.zeros(partitions, dtype=np.int64)
    for first in range(0, racks, _BITS):
        here = (replica >= first) & (replica < min(first + _BITS, racks))
        bits = np.zeros(partitions, dtype=np.int64)
        np.bitwise_or.at(bits, partition[here], np.int64(1) << (replica[here] - first))
        _, part = np.unique(bits, return_inverse=True)
        _, kind = np.unique(kind * (int(part.max(initial=0)) + 1) + part, return_inverse=True)
    kinds = int(kind.max(initial=0)) + 1
    if kinds * (racks + 1) > _LARGEST_TABLE:
        return np.zeros_like(kind), np.zeros((1, racks + 1), dtype=np.bool_)
    is_local = np.zeros((kinds, racks + 1), dtype=np.bool_)
    is_local[kind[partition], replica] = True
    is_local[:, racks] = False
    return kind, is_local


def _improve_bundle(
    problem: Problem, places: _Places, bundle: int, target: Members, work: Work
) -> None:
    """Redistribute one bundle: each rack keeps its number of partitions, but of local kinds."""
    partition = places.by_bundle[places.bundle_start[bundle] : places.bundle_start[bundle + 1]]
    kinds, kind = np.unique(places.kind[partition], return_inverse=True)
    members = places.graph.member[places.graph.subscribers(bundle)]
    owner = places.owner[partition]
    shape = (len(kinds), places.racks)
    count = _count(kind, places.rack_of_member[target[partition]], shape)
    is_owned = owner != NOBODY
    held = _count(kind[is_owned], places.rack_of_member[owner[is_owned]], shape)
    transport = Transport(
        count, held, places.is_local[kinds], np.full(shape, problem.partitions, dtype=np.int64)
    )
    deal_locally(transport)
    is_whole = places.graph.bundles == 1 and _add_odd_ones(
        transport, places.rack_of_member[members], _loads(problem, target)[members]
    )
    if work.left > 0:
        improve(transport, work)
    rack = _choose_racks(kind, owner, places, transport.count[: len(kinds)])
    if not is_whole:
        target[partition] = _deal_in_racks(places, members, owner, rack, target[partition])
        return
    for which in np.unique(rack).tolist():
        inside = np.flatnonzero(rack == which)
        here = members[places.rack_of_member[members] == which]
        target[partition[inside]] = _deal_in_rack(problem, here, owner[inside])


def _count(kind: Ints, rack: Ints, shape: tuple[int, int]) -> Ints:
    return np.bincount(kind * shape[1] + rack, minlength=shape[0] * shape[1]).reshape(shape)


def _loads(problem: Problem, target: Members) -> Ints:
    loads = np.bincount(target[target != NOBODY], minlength=problem.members)
    return loads if problem.fixed is None else loads + problem.fixed.partitions


def _add_odd_ones(transport: Transport, rack_of_member: Ints, load: Ints) -> bool:
    """Add a kind for the gaps of members that have one partition less than others.

    A gap may be in any rack, up to the rack's number of members, so racks can trade the odd
    partitions. Return whether the kind was added: it is not if loads differ by more than one.
    """
    if int(load.max() - load.min()) > 1:
        return False
    racks = transport.count.shape[1]
    gaps = np.bincount(rack_of_member[load < load.max()], minlength=racks)
    room = np.bincount(rack_of_member, minlength=racks) - gaps
    transport.count = np.vstack((transport.count, gaps))
    transport.held = np.vstack((transport.held, gaps))
    transport.is_local = np.vstack((transport.is_local, np.zeros(racks, dtype=np.bool_)))
    transport.room = np.vstack((transport.room, room))
    return True


def _choose_racks(kind: Ints, owner: Members, places: _Places, count: Ints) -> Ints:
    """The rack of each partition: the owner's, up to that rack's count for its kind."""
    racks = places.racks
    cell = kind * racks + np.where(owner == NOBODY, 0, places.rack_of_member[owner])
    order = np.flatnonzero(owner != NOBODY)
    order = order[np.argsort(cell[order], kind="stable")]
    start = np.searchsorted(cell[order], np.arange(count.size))
    stays = np.arange(len(order)) - start[cell[order]] < count.ravel()[cell[order]]
    order = order[stays]
    rack = np.full(len(kind), NOBODY, dtype=np.int64)
    rack[order] = cell[order] % racks
    left = count.ravel() - np.bincount(cell[order], minlength=count.size)
    free = np.flatnonzero(rack == NOBODY)
    free = free[np.argsort(kind[free], kind="stable")]
    rack[free] = np.repeat(np.arange(count.size) % racks, left)
    return rack


def _deal_in_racks(
    places: _Places, members: Ints, owner: Members, rack: Ints, target: Members
) -> Members:
    """Assign partitions to members of their racks; owners keep what they may.

    The number of partitions per member is that of `target`.
    """
    members = members[np.argsort(places.rack_of_member[members], kind="stable")]
    rack_of_holder = places.rack_of_member[members]
    index = np.zeros(len(places.rack_of_member) + 1, dtype=np.int64)
    index[members] = np.arange(1, len(members) + 1)
    owner_number = index[owner]
    owner_number[np.append(NOBODY, rack_of_holder)[owner_number] != rack] = 0
    held = np.bincount(owner_number, minlength=len(members) + 1)[1:]
    quota = np.bincount(index[target], minlength=len(members) + 1)[1:]
    owner_number[find_excess(owner_number, held, quota)] = 0
    free = np.flatnonzero(owner_number == 0)
    free = free[np.argsort(rack[free], kind="stable")]
    turns = deal_in_turns(np.minimum(held, quota), quota)
    owner_number[free] = 1 + turns[np.argsort(rack_of_holder[turns], kind="stable")]
    dealt: Members = members[owner_number - 1].astype(np.int32)
    return dealt


def _deal_in_rack(problem: Problem, members: Ints, owner: Members) -> Members:
    """Assign the partitions of a rack to its members; owners keep what they may.

    The number of partitions per member may change, as long as members are balanced.
    """
    index = np.full(problem.members + 1, 0)
    index[members] = np.arange(1, len(members) + 1)
    owner_number = index[owner]
    held = np.bincount(owner_number, minlength=len(members) + 1)[1:]
    fixed = np.zeros(len(members), dtype=np.int64)
    if problem.fixed is not None:
        fixed = problem.fixed.partitions[members]
    quota = pour(fixed, len(owner), first=held)
    owner_number[find_excess(owner_number, held, quota)] = 0
    free = owner_number == 0
    owner_number[free] = 1 + deal_in_turns(fixed + np.minimum(held, quota), fixed + quota)
    dealt: Members = members[owner_number - 1].astype(np.int32)
    return dealt
