"""Our results for the inputs of Kafka 4.3.0's assignors, compared with Kafka's."""

from __future__ import annotations

from itertools import combinations

import pytest

from muster.assignors.range import assign_range
from muster.assignors.uniform.uniform_assignor import assign_uniform
from tests.support.assignors.cases import compute_checksum, read_rounds
from tests.unit.assignors.beside_kafka import Tally, compare, compute_balance_score

UNIFORM = ("server-uniform-homogeneous", "server-uniform-heterogeneous")
BIG = "assignors_big.jsonl.gz"
SMALL = "assignors.jsonl.gz"


def test_range_is_kafkas() -> None:
    rounds = list(read_rounds(SMALL, "server-range"))
    assert len(rounds) == 90
    for each in rounds:
        target = assign_range(each.make_problem())
        assert each.name_assignment(target) == each.expected_assignment(), each.name


def test_big_range_is_kafkas() -> None:
    rounds = list(read_rounds(BIG, "server-range"))
    assert len(rounds) == 8
    for each in rounds:
        assignment = each.name_assignment(assign_range(each.make_problem()))
        assert compute_checksum(assignment) == each.line["checksum"], each.name


def test_uniform_is_never_worse_than_kafkas() -> None:
    tally = Tally()
    for file, count in ((SMALL, 90), (BIG, 8)):
        for assignor in UNIFORM:
            rounds = list(read_rounds(file, assignor))
            assert len(rounds) == count
            for each in rounds:
                problem = each.make_problem()
                compare(tally, assignor, each, problem, assign_uniform(problem))
    print(f"\nuniform beside Kafka's\n{tally.render()}")
    assert sum(sum(counts.values()) for counts in tally.counts.values()) == 196
    assert tally.losses == []


@pytest.mark.parametrize(
    ("loads", "score"), [([], 0), ([3], 0), ([2, 2, 2], 0), ([1, 2, 3], 4), ([0, 0, 6], 12)]
)
def test_the_balance_score_is_kip_54s(loads: list[int], score: int) -> None:
    assert compute_balance_score(loads) == score
    assert compute_balance_score(loads) == sum(abs(a - b) for a, b in combinations(loads, 2))
