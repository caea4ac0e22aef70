"""Assignors cost what members and partitions are, in steps and in bytes, also in odd shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from muster.assignors.names import BUILT_IN_ASSIGNORS
from muster.assignors.problem import NOBODY, Problem, Racks, Subscriptions, Weights
from muster.assignors.registry import ASSIGNORS
from muster.assignors.rules import Rules, compute_assignment
from tests.cost.counting import check_linear

PARTITIONS: Final = 10
"""For each member."""

RACKS: Final = 60
EACH: Final = 10
"""How many of very many topics a member subscribes to."""

Shape = Callable[[int, np.random.Generator], Problem]


def same(members: int, random: np.random.Generator, **said: Any) -> Problem:
    """All subscribe to one topic, which nobody has."""
    partitions = PARTITIONS * members
    nobody = np.full(partitions, NOBODY, dtype=np.int32)
    rest = {"owner": nobody, "racks": None, "weights": None, **said}
    return Problem(
        np.array([0, partitions]), members, subscriptions=Subscriptions.all(members, 1), **rest
    )


def mixed(members: int, random: np.random.Generator, **said: Any) -> Problem:
    """Each subscribes to some of very many topics."""
    topics, size = members // 10, 10 * PARTITIONS
    named = [random.choice(topics, EACH, replace=False).tolist() for _ in range(members)]
    nobody = np.full(topics * size, NOBODY, dtype=np.int32)
    rest = {"owner": nobody, "racks": None, "weights": None, **said}
    return Problem(
        np.arange(topics + 1) * size,
        members,
        subscriptions=Subscriptions.of(named, topics),
        **rest,
    )


def make_racks(members: int, random: np.random.Generator) -> Racks:
    """Three replicas of each partition, anywhere: so nearly each partition is of its own kind."""
    partitions = PARTITIONS * members
    return Racks(
        random.integers(0, RACKS, members),
        np.arange(partitions + 1) * 3,
        random.integers(0, RACKS, 3 * partitions),
    )


def make_weights(members: int, random: np.random.Generator) -> Weights:
    return Weights(random.lognormal(0, 2, PARTITIONS * members))


def make_owner(members: int, random: np.random.Generator) -> Any:
    return random.integers(0, members, PARTITIONS * members).astype(np.int32)


SHAPES: dict[str, Shape] = {
    "same": same,
    "mixed": mixed,
    "owned by anybody": lambda n, random: same(n, random, owner=make_owner(n, random)),
    "owned by one": lambda n, random: same(n, random, owner=np.zeros(10 * n, dtype=np.int32)),
    "racks": lambda n, random: same(n, random, racks=make_racks(n, random)),
    "racks, mixed": lambda n, random: mixed(n, random, racks=make_racks(n, random)),
    "weights": lambda n, random: same(n, random, weights=make_weights(n, random)),
    "weights, one has all": lambda n, random: same(
        n, random, weights=make_weights(n, random), owner=np.zeros(10 * n, dtype=np.int32)
    ),
    "weights, mixed": lambda n, random: mixed(n, random, weights=make_weights(n, random)),
}


CASES = [
    *((name, shape) for name in BUILT_IN_ASSIGNORS for shape in ("same", "mixed")),
    ("uniform", "owned by anybody"),
    ("uniform", "owned by one"),
    *(("rack", shape) for shape in SHAPES if "racks" in shape),
    *(("weighted", shape) for shape in SHAPES if "weights" in shape),
]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_cost_is_linear(name: str, shape: str) -> None:
    check_linear(make_work(name, shape, Rules()), 120)


@pytest.mark.parametrize("name", ["uniform", "weighted"])
def test_a_step_of_a_move_budget_is_linear(name: str) -> None:
    check_linear(make_work(name, "weights, one has all", Rules(move_budget=50)), 120)


def make_work(name: str, shape: str, rules: Rules) -> Callable[[int], Callable[[], Any]]:
    def prepare(members: int) -> Callable[[], Any]:
        problem = SHAPES[shape](members, np.random.default_rng(7))
        return lambda: compute_assignment(ASSIGNORS[name], problem, rules)

    return prepare
