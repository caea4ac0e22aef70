"""Compares the weighted assignor with computed bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from muster.assignors.problem import NOBODY, Floats, Members, Problem, Subscriptions, Weights
from muster.assignors.uniform.uniform_assignor import assign_uniform
from muster.assignors.weighted.weighted_assignor import assign_weighted
from muster.assignors.weights import compute_weights_from_lag, compute_weights_from_rate
from tests.support.assignors.cases import check_valid, compute_loads
from tests.support.assignors.figures import compute_weight_loads

TOPICS = 2

WEIGHTS = {
    "even": lambda chance, count: chance.random(count) + 0.01,
    "lognormal": lambda chance, count: chance.lognormal(0, 1, count),
    "zipf": lambda _chance, count: 1 / np.arange(1, count + 1) ** 0.8,
    "exponential": lambda chance, count: chance.exponential(1, count),
}


def make_group(members: int, weight: Floats, owner: Members | None = None) -> Problem:
    partitions = len(weight)
    return Problem(
        np.array([0, partitions // TOPICS, partitions]),
        members,
        np.full(partitions, NOBODY, dtype=np.int32) if owner is None else owner,
        Subscriptions.all(members, TOPICS),
        weights=Weights(weight),
    )


def compute_bound(members: int, weight: Floats) -> float:
    """A lower bound of the highest load: the mean, or the heaviest partition."""
    return max(float(weight.sum()) / members, float(weight.max()))


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize(("members", "partitions"), [(3, 60), (10, 100), (50, 500), (20, 1000)])
def test_close_to_the_bound_with_few_moves(name: str, members: int, partitions: int) -> None:
    """Members join and leave; each result is the input of the next round."""
    weight = WEIGHTS[name](np.random.default_rng(members), partitions)
    weighted = assign_weighted(make_group(members, weight))
    uniform = assign_uniform(make_group(members, weight))
    moves = uniform_moves = 0
    for change in (0, 1, 1, -1, 1, -1, -1, 1):
        members += change
        before = np.where(weighted < members, weighted, NOBODY).astype(np.int32)
        uniform_before = np.where(uniform < members, uniform, NOBODY).astype(np.int32)
        problem = make_group(members, weight, before)
        now = assign_weighted(problem)
        check_valid(problem, now)
        highest = max(compute_weight_loads(problem, now))
        assert highest <= 1.05 * compute_bound(members, weight)
        uniform_now = assign_uniform(make_group(members, weight, uniform_before))
        moves += int((now != weighted).sum())
        uniform_moves += int((uniform_now != uniform).sum())
        weighted, uniform = now, uniform_now
    assert moves <= 2 * uniform_moves


def test_nothing_moves_within_the_skew_limit() -> None:
    weight = np.array([10.0, 10.0, 10.4, 10.0, 9.8, 10.2])
    owner = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    problem = make_group(2, weight, owner)
    assert assign_weighted(problem).tolist() == owner.tolist()
    owner = np.array([0, 0, 0, 0, 1, 1], dtype=np.int32)
    moved = assign_weighted(make_group(2, weight, owner))
    assert int((moved != owner).sum()) == 1


def test_two_partitions_change_places_where_no_one_can_just_go() -> None:
    weight = np.array([6.0, 5.0, 5.0, 2.0])
    target = assign_weighted(make_group(2, weight, np.array([0, 0, 1, 1], dtype=np.int32)))
    assert sorted(compute_weight_loads(make_group(2, weight), target)) == [8.0, 10.0]


def test_partitions_that_weigh_nothing_go_by_number() -> None:
    weight = np.array([9.0, 1.0, *[0.0] * 10])
    problem = make_group(2, weight)
    assert sorted(compute_loads(problem, assign_weighted(problem)).tolist()) == [6, 6]


def test_without_weights_it_is_uniform() -> None:
    owner = np.array([0, 0, 0, 0, NOBODY, 1], dtype=np.int32)
    nothing = make_group(2, np.zeros(6), owner)
    for problem in (nothing, replace(nothing, weights=None)):
        assert assign_weighted(problem).tolist() == assign_uniform(problem).tolist()


def test_mixed_subscriptions() -> None:
    """Close to the bound of every set of topics, whose partitions only its subscribers can take."""
    chance = np.random.default_rng(2)
    members, topics, each = 30, 10, 40
    chosen = [np.flatnonzero(row).tolist() or [0] for row in chance.random((members, topics)) < 0.3]
    weight = chance.exponential(1, topics * each)
    problem = Problem(
        np.arange(topics + 1) * each,
        members,
        np.full(topics * each, NOBODY, dtype=np.int32),
        Subscriptions.of(chosen, topics),
        weights=Weights(weight),
    )
    target = assign_weighted(problem)
    check_valid(problem, target)
    bound = max(compute_bound(members, weight), compute_topics_bound(chosen, weight, each))
    assert max(compute_weight_loads(problem, target)) <= 1.05 * bound


def compute_topics_bound(chosen: list[list[int]], weight: Floats, each: int) -> float:
    """For each topic and each two, the least average load of their subscribers."""
    of_topic = weight.reshape(-1, each).sum(axis=1)
    bound = 0.0
    for one in range(len(of_topic)):
        for other in range(len(of_topic)):
            together = {one, other}
            subscribers = sum(bool(together & set(topics)) for topics in chosen)
            bound = max(bound, float(of_topic[list(together)].sum()) / subscribers)
    return bound


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_weights_are_finite_and_not_negative(wrong: float) -> None:
    with pytest.raises(ValueError, match="a weight is negative or not finite"):
        make_group(1, np.array([1.0, wrong]))


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan")])
def test_a_skew_limit_is_a_part(wrong: float) -> None:
    with pytest.raises(ValueError, match="is not between 0 and 1"):
        Weights(np.ones(1), wrong)


def test_weights_from_lag() -> None:
    nan = float("nan")
    end = np.array([100.0, 10.0, 5.0, nan, 7.0])
    committed = np.array([0.0, 10.0, 9.0, 3.0, nan])
    mean = 100 / 3
    weights = compute_weights_from_lag(end, committed).tolist()
    assert weights == pytest.approx([100.0, mean / 100, mean / 100, mean, mean])
    assert compute_weights_from_lag(end, end).tolist() == [1.0] * 5


def test_weights_from_rate() -> None:
    before, now = np.array([0.0, 50.0, 9.0]), np.array([40.0, 70.0, 0.0])
    weights = compute_weights_from_rate(before, now, 10).tolist()
    assert weights == pytest.approx([4.0, 2.0, 0.02])
    with pytest.raises(ValueError, match="is not above 0"):
        compute_weights_from_rate(before, now, 0)
