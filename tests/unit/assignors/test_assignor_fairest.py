"""Compares the uniform assignor with a slow model that finds the best result."""

from __future__ import annotations

import numpy as np
import pytest

from muster.assignors.problem import NOBODY, Members, Problem
from muster.assignors.uniform.uniform_assignor import assign_uniform
from tests.support.assignors.cases import (
    check_valid,
    compute_loads,
    compute_spread,
    count_moves,
    is_complete,
    is_locally_balanced,
    make_problem,
)
from tests.support.assignors.fairest import assign_fairest

BLOCKS = 8
CASES_IN_BLOCK = 60


def make_random_problem(seed: int) -> Problem:
    """Few members, mixed subscriptions, and owners that are partly missing and partly skewed."""
    chance = np.random.default_rng(seed)
    members, topics = int(chance.integers(2, 8)), int(chance.integers(2, 7))
    subscribes = chance.random((members, topics)) < max(chance.random(), 0.2)
    for member in np.flatnonzero(~subscribes.any(axis=1)):
        subscribes[member, chance.integers(topics)] = True
    counts = chance.integers(1, 8, topics).tolist()
    owner: list[int] = []
    unowned = chance.choice([0.0, 0.05, 0.3, 1.0])
    for topic in range(topics):
        candidates = np.flatnonzero(subscribes[:, topic])
        for _ in range(counts[topic]):
            skewed = int(len(candidates) * chance.random() ** 3)
            has_owner = len(candidates) and chance.random() >= unowned
            owner.append(int(candidates[skewed]) if has_owner else NOBODY)
    return make_problem(counts, [np.flatnonzero(row).tolist() for row in subscribes], owner)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_as_even_as_the_fairest_and_no_more_moves(block: int) -> None:
    for seed in range(block * CASES_IN_BLOCK, (block + 1) * CASES_IN_BLOCK):
        problem = make_random_problem(seed)
        target = assign_uniform(problem)
        check_valid(problem, target)
        assert is_locally_balanced(problem, target), seed
        if not is_complete(problem, problem.owner) or not is_locally_balanced(
            problem, problem.owner
        ):
            _check_against_fairest(problem, target, f"seed {seed}")


def _check_against_fairest(problem: Problem, target: Members, name: str) -> None:
    fairest = np.array(assign_fairest(problem), dtype=np.int32)
    assert compute_spread(problem, target) == compute_spread(problem, fairest), name
    even = int((compute_loads(problem, target) ** 2).sum())
    fairest_even = int((compute_loads(problem, fairest) ** 2).sum())
    moves, fairest_moves = count_moves(problem, target), count_moves(problem, fairest)
    if even == fairest_even:
        assert moves == fairest_moves, name
    else:  # the last bit of evenness costs owners partitions and does not narrow the spread
        assert moves < fairest_moves, name
        assert even - fairest_even <= 2 * (fairest_moves - moves), name
