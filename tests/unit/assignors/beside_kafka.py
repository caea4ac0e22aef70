"""Compares our results with those of Kafka's own assignors for the same problems.

It compares, in this order, what KIP-54 asks of an assignor: legal partitions without an owner, the
balance score, and partitions taken from live owners. Less is better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from muster.assignors.problem import NOBODY, Members, Problem
from tests.support.assignors.cases import (
    Round,
    check_valid,
    compute_loads,
    count_moves,
    subscriber_table,
)


class Score(NamedTuple):
    """A score; the first figure that differs decides, and smaller is better."""

    unowned: int
    imbalance: int
    moves: int


class Tally:
    """Wins, ties and losses, by the figure that decided."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.losses: list[str] = []

    def add(self, name: str, case: str, ours: Score, theirs: Score) -> None:
        """Count one result. A loss is kept with both scores."""
        result = "tie" if ours == theirs else "win" if ours < theirs else "loss"
        self.counts.setdefault(name, Counter())[result] += 1
        if result == "loss":
            self.losses.append(f"{name} {case}: ours {ours}, Kafka's {theirs}")

    def render(self) -> str:
        """The table, with one line per assignor."""
        width = max(map(len, self.counts), default=0)
        lines = [f"{'':{width}}  wins  ties  losses"]
        for name, found in self.counts.items():
            lines.append(f"{name:{width}}  {found['win']:4}  {found['tie']:4}  {found['loss']:6}")
        return "\n".join(lines)


def score_target(problem: Problem, target: Members) -> Score:
    """The score of a valid result."""
    subscribed = np.array([bool(members) for members in subscriber_table(problem)], dtype=np.bool_)
    legal = subscribed[problem.topic_of_partition()]
    loads = compute_loads(problem, target)
    return Score(
        int((legal & (target == NOBODY)).sum()),
        compute_balance_score(loads.tolist()),
        count_moves(problem, target),
    )


def compute_balance_score(loads: Iterable[int]) -> int:
    """KIP-54's balance score: the sum of the load differences of all pairs of members."""
    ascending = sorted(loads)
    last = len(ascending) - 1
    return sum((2 * place - last) * load for place, load in enumerate(ascending))


def compare(tally: Tally, name: str, each: Round, problem: Problem, target: Members) -> None:
    """Check both results, and count which is better."""
    theirs = each.kafkas_target()
    check_valid(problem, target)
    check_valid(problem, theirs)
    tally.add(name, each.name, score_target(problem, target), score_target(problem, theirs))
