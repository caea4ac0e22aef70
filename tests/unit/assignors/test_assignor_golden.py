"""Our answers to the problems that Kafka 4.3.0's assignors were given, beside Kafka's."""

from __future__ import annotations

import pytest

from assignors.range import assign_range
from assignors.uniform import assign_uniform
from tests.unit.assignors.cases import (
    Round,
    check_valid,
    compute_checksum,
    compute_loads,
    count_moves,
    read_rounds,
)

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


@pytest.mark.parametrize(("file", "count"), [(SMALL, 90), (BIG, 8)])
@pytest.mark.parametrize("assignor", UNIFORM)
def test_uniform_is_at_least_as_even_and_sticky_as_kafkas(
    assignor: str, file: str, count: int
) -> None:
    rounds = list(read_rounds(file, assignor))
    assert len(rounds) == count
    for each in rounds:
        check_uniform(each, homogeneous=assignor == UNIFORM[0])


def check_uniform(each: Round, *, homogeneous: bool) -> None:
    problem = each.make_problem()
    target = assign_uniform(problem)
    check_valid(problem, target)
    loads = compute_loads(problem, target)
    assert int(loads.sum()) == each.quality["assigned"], each.name
    assert loads.max() <= each.quality["max"], each.name
    assert loads.min() >= each.quality["min"], each.name
    assert count_moves(problem, target) <= each.quality["movedFromLiveOwner"], each.name
    if homogeneous:
        assert loads.max() - loads.min() <= 1, each.name
