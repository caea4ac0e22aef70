"""Compares the rack assignor with the maximum locality, computed by a maximum flow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from muster.assignors.problem import NO_RACK, NOBODY, Problem, Racks, Subscriptions
from muster.assignors.rack.rack_assignor import assign_rack
from muster.assignors.uniform.uniform_assignor import assign_uniform
from tests.support.assignors.cases import check_valid, compute_loads, compute_spread, count_moves
from tests.support.assignors.figures import compute_most_local, count_local, make_racks

TOPICS = 4


def make_group(
    members: int, partitions: int, racks: int, replicas: int, seed: int, skewed: bool = False
) -> Problem:
    """Replicas spread over the racks, members anywhere; `skewed`: half of them in one rack."""
    chance = np.random.default_rng(seed)
    of_member = chance.integers(0, racks, members)
    if skewed:
        of_member[: members // 2] = 0
    found = [chance.permutation(racks)[:replicas].tolist() for _ in range(partitions)]
    return Problem(
        np.arange(TOPICS + 1) * (partitions // TOPICS),
        members,
        np.full(partitions, NOBODY, dtype=np.int32),
        Subscriptions.all(members, TOPICS),
        make_racks(of_member.tolist(), found),
    )


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize(("members", "partitions"), [(3, 24), (10, 100), (31, 200), (40, 60)])
def test_on_three_racks_as_much_is_local_as_can_be(
    members: int, partitions: int, replicas: int, skewed: bool
) -> None:
    problem = make_group(members, partitions, 3, replicas, seed=members, skewed=skewed)
    target = assign_rack(problem)
    check_valid(problem, target)
    assert compute_spread(problem, target) <= 1
    most = compute_most_local(problem, [-(-partitions // members)] * members)
    assert count_local(problem, target) >= 0.95 * most
    assert count_local(problem, target) >= count_local(problem, assign_uniform(problem))


def test_a_spread_group_is_local_altogether() -> None:
    problem = make_group(30, 600, 3, 2, seed=5)
    assert count_local(problem, assign_uniform(problem)) < 450
    assert count_local(problem, assign_rack(problem)) == 600


def test_a_member_that_joins_costs_no_more_moves_than_with_uniform() -> None:
    problem = make_group(30, 600, 3, 2, seed=5)
    racks = problem.racks
    assert racks is not None
    joined = replace(
        problem,
        members=31,
        owner=assign_rack(problem),
        subscriptions=Subscriptions.all(31, TOPICS),
        racks=Racks(np.append(racks.of_member, 1), racks.replica_start, racks.replica),
    )
    target = assign_rack(joined)
    assert count_local(joined, target) == 600
    assert count_moves(joined, target) <= 2 * count_moves(joined, assign_uniform(joined))


def test_mixed_subscriptions_are_local_where_balance_allows() -> None:
    chance = np.random.default_rng(3)
    group = make_group(24, 240, 3, 2, seed=3)
    chosen = [np.flatnonzero(row).tolist() for row in chance.random((24, TOPICS)) < 0.6]
    problem = replace(group, subscriptions=Subscriptions.of(chosen, TOPICS))
    target, uniform = assign_rack(problem), assign_uniform(problem)
    check_valid(problem, target)
    loads = compute_loads(problem, target).tolist()
    assert sorted(loads) == sorted(compute_loads(problem, uniform).tolist())
    assert count_local(problem, target) >= 0.95 * problem.partitions


@pytest.mark.parametrize("racks", [40, 70])
def test_there_may_be_many_racks(racks: int) -> None:
    problem = make_group(2 * racks, 4 * racks, racks, 3, seed=racks)
    most = compute_most_local(problem, [2] * problem.members)
    assert count_local(problem, assign_rack(problem)) == most


@pytest.mark.parametrize(
    "racks",
    [
        None,
        make_racks([NO_RACK] * 3, [[0], [1], [2], [0]]),
        make_racks([0, 1, 2], [[], [], [], []]),
        make_racks([0, 1, 2], [[7], [8], [9], [7]]),
    ],
    ids=["no racks", "no member says where it is", "no replicas are known", "other racks"],
)
def test_where_no_racks_fit_it_is_uniform(racks: Racks | None) -> None:
    owner = np.array([0, 0, 0, NOBODY], dtype=np.int32)
    problem = Problem(np.array([0, 4]), 3, owner, Subscriptions.all(3, 1), racks)
    assert assign_rack(problem).tolist() == assign_uniform(problem).tolist()


@pytest.mark.parametrize(
    ("racks", "said"),
    [
        ((np.array([0]), np.array([0, 1]), np.array([-1])), "a rack number is negative"),
        ((np.array([-2]), np.array([0, 1]), np.array([0])), "a rack number is negative"),
        ((np.array([0]), np.array([0, 2]), np.array([0])), "must ascend"),
    ],
)
def test_bad_racks_are_refused(
    racks: tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Racks(*racks)
